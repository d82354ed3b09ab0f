"""Commands for who has a release alone."""

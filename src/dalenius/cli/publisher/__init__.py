"""Commands for who has the table."""

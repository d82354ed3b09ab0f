"""promises."""

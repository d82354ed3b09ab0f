"""Tables of people: where they come from, and how often their values occur."""

"""A report as values, and how they are shown: HTML, text, JSON, pictures."""

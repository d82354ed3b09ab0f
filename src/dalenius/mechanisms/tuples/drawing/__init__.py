"""Whole tables drawn given published tuples, of which some are people's and some are noise."""

"""Dalenius."""

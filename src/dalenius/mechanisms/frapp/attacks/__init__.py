"""Attacks on FRAPP."""

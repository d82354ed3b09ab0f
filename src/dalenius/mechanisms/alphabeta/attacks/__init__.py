"""Attacks on views."""

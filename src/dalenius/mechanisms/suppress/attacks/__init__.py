"""Attacks on suppression."""

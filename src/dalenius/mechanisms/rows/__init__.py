"""Asking releases with a row per person: questions as scores of rows and weights of sensitive values."""

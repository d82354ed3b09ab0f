"""Buckets made inside regions of similar people."""

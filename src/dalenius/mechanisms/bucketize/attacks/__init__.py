"""Attacks on bucketized releases."""

"""Attacking a release with its original at hand."""

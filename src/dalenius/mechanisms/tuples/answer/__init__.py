"""Asking releases whose whole tuples are protected: questions as functions on the tuples of a domain."""

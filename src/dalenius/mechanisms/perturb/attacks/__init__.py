"""Attacks on perturbed releases."""

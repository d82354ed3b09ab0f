"""Suppression for tables whose sensitive attribute is too skewed for ℓ-diversity."""

"""How promises are kept: one folder a mechanism, with the same file names in each."""

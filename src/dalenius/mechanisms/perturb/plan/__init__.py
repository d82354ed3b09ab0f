"""Which parts a table is perturbed in: starts, improvements, and the choice."""

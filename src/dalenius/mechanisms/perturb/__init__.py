"""mechanisms/perturb."""

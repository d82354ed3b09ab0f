"""Many machines: Spark runs the same kernels."""

"""Which buckets, and how many: a plan from counts and thresholds."""

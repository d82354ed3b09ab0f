"""mechanisms/bucketize."""

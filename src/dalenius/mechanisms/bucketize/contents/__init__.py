"""What is in which bucket, where that is not dealt round-robin."""

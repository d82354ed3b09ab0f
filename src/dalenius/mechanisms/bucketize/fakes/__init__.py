"""Values in a bucket that are nobody's."""

"""What a publisher sees of a table before a policy exists, and the first policy that is written for it."""

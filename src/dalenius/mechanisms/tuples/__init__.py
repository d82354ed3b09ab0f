"""What mechanisms that publish whole tuples share: the domain of all tuples, and sums over it."""

"""mechanisms/alphabeta."""

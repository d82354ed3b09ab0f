"""The papers' tables and figures, made again: one experiment a file, ours beside theirs."""

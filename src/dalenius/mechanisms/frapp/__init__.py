"""FRAPP: each record is kept, or replaced by any other tuple of the domain."""

"""One machine: DuckDB scans, sorts and spills."""

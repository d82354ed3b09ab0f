"""The analysts' read-only service over releases: it never sees a source."""

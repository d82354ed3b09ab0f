"""Files as people have them: their bytes, their dialect, and one reader a format."""

"""What is published: a folder with a manifest and Parquet tables."""

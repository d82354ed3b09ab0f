"""The pages, one step a file."""

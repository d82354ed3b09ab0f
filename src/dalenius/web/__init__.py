"""What the pages in a browser share: who may see them, and how they are written."""

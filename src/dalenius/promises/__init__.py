"""What is promised about a release, one promise a file; how it is kept is the mechanisms' business."""

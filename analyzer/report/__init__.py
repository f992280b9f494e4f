"""What a profile looks like: one file a format."""

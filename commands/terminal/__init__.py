"""The terminal: width, colours, progress."""

"""A process that records itself: what it brings into itself, and the recorder beside it."""

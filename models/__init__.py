"""Hardware models: one file a unit."""

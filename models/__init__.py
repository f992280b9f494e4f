"""Hardware models: one file per unit."""

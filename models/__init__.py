"""What a device does with a trace: one file a model."""

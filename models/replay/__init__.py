"""The machinery around the models: devices, placement, wiring, attribution."""

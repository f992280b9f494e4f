"""Replay: devices, placement, wiring and attribution around the models."""

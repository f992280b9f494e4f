"""Devices as data: one TOML a board, every number with its source."""

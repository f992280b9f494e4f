"""Definitions of counters as data: one TOML a vocabulary."""

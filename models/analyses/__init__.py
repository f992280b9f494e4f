"""Analyses without a stage of a device: control flow, occupancy, races in shared memory.

A file of `models/` is a stage that a device's TOML may name; other analyses belong here.
"""

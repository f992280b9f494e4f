"""Answers that need no stage of a device: control flow, occupancy, races in shared memory.

A file of `models/` is a stage that a device's TOML may name; what is none belongs here.
"""

"""Devices: their TOML files, read strictly, and what they make of a kernel that they cannot run.

Here belongs what follows from a device alone: no row of a trace is read here.
"""

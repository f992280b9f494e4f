"""Devices: TOML files, read strictly, and the substitutes for instructions that a device lacks.

This folder holds what depends on a device alone: it reads no row of a trace.
"""

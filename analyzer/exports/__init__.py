"""Exports of a trace to formats of other programs, a file each; `registry.py` has their interface.

Files of NVIDIA's profilers, which hold counters only, are in `profilers`.
"""

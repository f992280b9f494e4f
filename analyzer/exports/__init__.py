"""Exports of a trace to formats of other programs, one file each; `registry.py` has the interface.

Files of NVIDIA's profilers, which hold counters only, are in `profilers`.
"""

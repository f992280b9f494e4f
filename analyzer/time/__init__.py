"""The estimate of a launch's time: what its warps wait for, from latencies that were measured.

Bounds (`counting/bounds.py`) are proven; what is here is not. No integer of a model comes from it.
"""

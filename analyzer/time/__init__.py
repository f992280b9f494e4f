"""The estimate of a launch's time: the stalls of its warps, from measured latencies.

Bounds (`counting/bounds.py`) are proven; estimates are not. No counter of a model depends on them.
"""

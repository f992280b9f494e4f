"""Data reuse: miss-ratio curves, reuse-distance histograms and set maps from one replay.

`reuse.py` measures, the others show. A cache that a device has is `models/cache.py`'s.
"""

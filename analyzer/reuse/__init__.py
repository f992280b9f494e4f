"""What caches of any size would find: curves, histograms and maps of sets from one replay.

`reuse.py` measures, the others show. A cache that a device has is `models/cache.py`'s.
"""

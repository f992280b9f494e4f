"""Variants side by side: their values, whether they can be compared, and the report of it.

What a chip's profiler counted is read in `profilers`; here it is one more variant.
"""

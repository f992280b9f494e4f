"""Variants side by side: their values, whether they can be compared, and the report.

`profilers` reads the counters of a chip's profiler; here they are one more variant.
"""

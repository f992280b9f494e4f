"""Stages with state: caches, stream buffers and the L2 request coalescer, which take the rows of a
launch in the order of the schedule.

Imports `histogram`, `rows` and `schedule`. Tags, victims and write-backs are in `cache_sim`.
"""

"""Counting what keeps state: all rows of a launch in the order in which they happen.

Here belong the loops of caches and of the L2 request coalescer, and what feeds them.
"""

"""Stateful stages: simulate caches over all rows of a launch in issue order.

The loops of the caches and of the L2 request coalescer are here, with the code that feeds them.
"""

"""Warps: scheduler, SIMT stacks, groups, barriers, and what the core asks of an instruction set.

Imports `kernel`, `memory`, `ops` and `rows`; it knows no instruction set.
"""

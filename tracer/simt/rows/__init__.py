"""Rows of the trace: address patterns, paths of warps, batches of accesses.

Imports `kernel`, `memory`, `ops`, `jit` and `traces`. Nothing here runs an instruction.
"""

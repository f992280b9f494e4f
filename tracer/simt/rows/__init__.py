"""Rows of the trace: address patterns, paths of warps, batches of accesses, for both engines.

Imports `kernel`, `ops`, `jit` and `traces`. Nothing here runs an instruction.
"""

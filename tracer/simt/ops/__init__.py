"""Arithmetic of PTX instructions: one file a family, one table row an opcode.

Imports `ptx`, `jit` and `base`: values in, values out, no warp and no memory.
"""

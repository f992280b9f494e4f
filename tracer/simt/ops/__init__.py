"""Arithmetic of PTX instructions: one file per family, one table row per opcode.

Imports `ptx`, `jit` and `base`: values in, values out, no warp and no memory.
"""

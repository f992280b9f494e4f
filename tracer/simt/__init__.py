"""Engines: run every thread of a launch and write its rows. `run` runs waves of blocks, `tiering`
chooses between interpreter and machine code.

Imports `front`, `ptx`, `isa`, `traces`, `jit` and `base`, never `session` or `program`.
"""

"""Engines: run every thread of a launch and write its rows. `run` chooses between interpreter and
machine code, and runs waves of blocks.

Imports `front`, `ptx`, `isa`, `traces`, `jit` and `base`, never `session` or `program`.
"""

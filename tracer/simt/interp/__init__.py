"""The interpreter: a basic block as functions of a group of warps, in NumPy."""

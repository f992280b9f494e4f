"""The interpreter: a basic block as NumPy functions of a group of warps."""

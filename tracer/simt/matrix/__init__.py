"""Matrix instructions: `mma`, `ldmatrix` and their fragments in the lanes of a warp.

The arithmetic of their elements is in `op`.
"""

"""Matrix instructions: `mma`, `wgmma`, `wmma`, `ldmatrix`, and fragments in the lanes of a warp.

Imports `access`, `decode`, `memory`, `tma`, `warp` and `ops`; the arithmetic of elements is in
`ops`.
"""

"""Accesses of memory: state spaces, bounds checks and faults, rows, moves of lanes' bytes.

Imports `memory`, `rows`, `warp` and `ops`; it knows no instruction set. Memory itself is in
`memory`.
"""

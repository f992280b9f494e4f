"""Buffered trace rows: address patterns, control-flow paths of warps, batches of accesses.

Both engines write rows through this package. It knows no instruction's semantics.
"""

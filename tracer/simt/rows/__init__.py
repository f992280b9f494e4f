"""Rows of the trace on their way out: address patterns, histories of warps, batches of accesses.

Both engines write through these; what an instruction computes does not belong here.
"""

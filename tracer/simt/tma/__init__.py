"""Bulk copies: what one thread has the tensor memory accelerator move between memories.

`bytes_of.py` finds and checks the bytes, `completion.py` tells an mbarrier; the rest are
instructions.
"""

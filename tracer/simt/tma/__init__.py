"""Bulk copies of the tensor memory accelerator: `cp.async.bulk`, tensor maps, completion.

Imports `access`, `decode`, `memory`, `warp` and `ops`. `transfer` moves bytes and counts them at an
mbarrier.
"""

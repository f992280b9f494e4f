"""Instructions that access memory: loads, stores, atomics, `cp.async`; bounds checks and faults.

Imports `memory`, `warp`, `ops` and `kernel`. Memory itself is in `memory`.
"""

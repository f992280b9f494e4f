"""Machine code of a kernel: basic blocks, loops, pipes, and the fewest instructions it issues.

Imports device files (`models/replay/device`) and `traces`; it reads no row of a trace.
"""

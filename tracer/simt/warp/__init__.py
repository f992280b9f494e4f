"""State of warps: SIMT stacks, groups, registers, barriers, shuffles and votes, special registers.

Imports `kernel`, `memory`, `ops` and `rows`. Both engines import it; it imports neither.
"""

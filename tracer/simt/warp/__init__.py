"""The state of warps: SIMT stacks, barriers, warp synchronization, register slots, special
registers.
"""

"""Device memory: arenas and allocations, the device heap, textures, surfaces, address facts.

Addresses here are bytes, not sectors or banks.
"""

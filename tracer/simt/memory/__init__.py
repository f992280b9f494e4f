"""Memory and the instructions that reach it: bounds, faults, loads, stores, atomics, mbarrier.

Textures and surfaces have a room of their own; addresses here are bytes, not sectors or banks.
"""

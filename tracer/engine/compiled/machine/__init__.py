"""The state that machine code shares with its wave, and the routines over it.

Scheduling, checks of accesses, generic addresses: all written in the language of `native`.
"""

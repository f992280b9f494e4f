"""Races in shared memory: which warps touch which bytes between two barriers."""

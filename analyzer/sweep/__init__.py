"""Sweeps: a suite of variants in a TOML file, and the table of their counters.

`commands` starts the processes.
"""

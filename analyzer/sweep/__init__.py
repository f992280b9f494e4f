"""Sweeps: a suite of variants in a TOML file, and the table of what each counted.

Processes are started in `commands`.
"""

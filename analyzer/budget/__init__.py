"""Budgets: limits on counters in a TOML file, checked, reported and renewed.

Only what concerns that file; counters come from `counting`.
"""

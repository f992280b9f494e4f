"""Budgets: limits on counters in a TOML file; reading, checking, reporting and updating them.

The counters themselves come from `counting`.
"""

"""Stages without state: the distinct rows of a launch, how often each occurred, and the totals per
line and array.

Imports `device`, `rows` and `schedule`. Stages that need the order of rows are in `stateful`.
"""

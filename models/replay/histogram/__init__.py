"""Counting: rows through the stages of each device, and the totals by line and array.

Here belong stages without state and the sums; what needs the order of rows is in `ordered`.
"""

"""Rows of a trace as arrays: the instruction, array, lanes and addresses of each.

The readers of rows are here, with the coalescer's rules over them. Nothing here sums counts, keeps
state or knows a device.
"""

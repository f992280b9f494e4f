"""Rows of a trace as arrays: which instruction, array, lanes and addresses each one has.

Here belongs what reads rows, and the coalescer's rules over them; nothing here adds up, keeps state
or knows a device.
"""

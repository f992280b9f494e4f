"""Rows of a trace as arrays: which instruction, array, lanes and addresses each one has.

Here belongs what reads rows; nothing here counts, keeps state or knows a device.
"""

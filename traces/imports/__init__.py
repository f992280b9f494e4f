"""Import of other tools' traces, a format a file (`read_*.py`).

What goes in: text or records of another tool to rows of machine instructions
(`reader_interface.py`), and back.
What does not: counting anything, or knowing a device.
"""

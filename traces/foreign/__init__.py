"""Traces of other tools, a format a file: `read_*.py` reads one, `write_*.py` writes one.

What goes in: text or records of another tool to rows of machine instructions (`seam.py`), and back.
What does not: counting anything, or knowing a device.
"""

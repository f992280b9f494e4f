"""Import of other tools' traces, one format per file (`read_*.py`).

Readers turn text or records of another tool into rows of machine instructions
(`reader_interface.py`); `compose.py` turns these into launches. Nothing here counts, or knows a
device.
"""

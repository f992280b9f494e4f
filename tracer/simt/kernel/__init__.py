"""A launch with its options, and facts of a kernel's text: loops, layout, function pointers.

Imports `ptx`, `ops` and `traces`. Nothing here knows a warp or a row of the trace.
"""

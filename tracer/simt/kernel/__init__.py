"""Facts that follow from a kernel's text alone: loops, layout of variables, function pointers.

Nothing here knows a launch, a lane or a row of the trace.
"""

"""Properties of a kernel and its launch: loops, variable layout, function pointers, options.

Nothing here runs an instruction.
"""

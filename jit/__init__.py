"""Machine code: plain loops in Python and functions of NumPy arrays as LLVM assembly, compiled and
cached between runs.

Imports `base` alone. Nothing here knows a trace, a model or an instruction of PTX.
"""

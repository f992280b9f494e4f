"""The compiler: LLVM assembly to cached machine code, and two front ends for it.

`loop.py` compiles plain Python loops, `ufunc.py` and `numpy_tracer.py` NumPy functions of single
elements. Nothing here depends on traces, models or instructions.
"""

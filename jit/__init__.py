"""Machine code: LLVM assembly compiled and kept between runs, plain Python loops made into it, and
NumPy functions made of it.

Nothing here knows what a trace, a model or an instruction is.
"""

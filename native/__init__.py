"""Machine code: LLVM assembly compiled and kept between runs, and plain Python loops made into it.

Nothing here knows what a trace, a model or an instruction is.
"""

"""Making machine code: loops as NumPy functions, plain Python functions as LLVM, the object cache.

Nothing here knows what an instruction of PTX does.
"""

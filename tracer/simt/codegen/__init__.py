"""Compiled engine: LLVM assembly for each basic block (`emit_*`), the scheduler of warps, and the
fallback to the interpreter.

Imports `interp` and what that imports; `run` imports it, no folder of `simt` does.
"""

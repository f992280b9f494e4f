"""Interpreter: instructions decoded to functions of a group of warps, in NumPy; waves of blocks.

Imports the folders of instructions (`decode`, `call`, `matrix`, `texture`, `tma`), never `codegen`.
"""

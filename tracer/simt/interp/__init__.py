"""Interpreter: instructions decoded to functions of a group of warps, in NumPy; waves of blocks.

Imports the folders of instructions (`access`, `call`, `matrix`, `texture`, `tma`), never `codegen`.
"""

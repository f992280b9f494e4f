"""LLVM assembly of a kernel: a text for each kind of instruction, basic block by basic block.

Only text is made here; what runs beside it is in `machine`.
"""

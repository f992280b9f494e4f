"""What is known before a text is written: where registers and parameters lie, where blocks are cut.

No LLVM assembly here.
"""

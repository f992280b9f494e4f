"""The array engine: a kernel decoded to steps over NumPy arrays, waves, warps that split and join.

Instructions of memory, texture, matrix and calls have rooms of their own beside this one.
"""

"""Calls: arguments and results, recursion, and the functions that the runtime brings (printf).

Which functions a pointer may mean is in `kernel`.
"""

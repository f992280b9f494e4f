"""Calls: arguments and results, recursion, device launches, functions of the runtime (`printf`).

Imports `access`, `decode`, `memory`, `warp`, `ops` and `kernel`, which finds what a function
pointer reaches.
"""

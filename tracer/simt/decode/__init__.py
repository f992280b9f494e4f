"""Instructions of PTX as steps of the interpreter: operands and registers, accesses, exchanges.

Imports `access`, `warp`, `memory`, `kernel`, `ops` and the parser's kernel. `interp` lists the
families; calls, matrices, textures and bulk copies have folders of their own.
"""

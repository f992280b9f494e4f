"""A kernel and its launch: signature, arguments, execution configuration, facts of its text.

Nothing here reads a source file; that is `source`.
"""

"""A source as tree-sitter reads it: definitions, template instances, launches in macros.

Nothing here calls a compiler.
"""

"""Parse a source with tree-sitter: definitions, template instances, launches in macros.

No module here calls a compiler.
"""

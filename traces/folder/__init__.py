"""The folder of a trace: how it is built and named, its manifest, limits of its size.

Rows of tables are in `table`.
"""

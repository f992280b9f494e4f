"""Verbs as Python functions: each returns a value with a notebook view and a data frame.

One file per verb. `subject` is the input of each: a trace, its path, or a source, which is recorded
temporarily. Replay options have the names and values of `cutrace.analyze`.
"""

"""Verbs as functions: each answers with a value that shows itself in a notebook and has a frame.

A file is a verb. `subject` is what all of them ask about: a trace, its path, or a source, which is
recorded for this once. Options of the replay have the names and values of `cutrace.analyze`.
"""

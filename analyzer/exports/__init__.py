"""Exports that need more than counters, a format a file; `registry.py` says what such a file has.

What goes in: a trace, as another program reads it. What does not: profilers' files (`profilers`).
"""

"""Advice on a launch: the evidence, what a change would save, and the report of it.

A single rule is a file in `rules`.
"""

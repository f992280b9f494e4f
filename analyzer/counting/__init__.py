"""Counters of one launch: vocabularies, formulas, and the columns that formulas read.

This folder computes values. `text` and `sheet` format them for people.
"""

"""Counters of one launch: vocabularies, formulas, and what formulas may read.

Values only; words for people are in `text` and `sheet`.
"""

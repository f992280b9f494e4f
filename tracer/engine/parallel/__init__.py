"""Waves of one launch in several threads: their rows are held and their reads and writes compared.

What a single wave does is in `array` and `compiled`.
"""

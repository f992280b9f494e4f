"""Advice on a launch: run the rules, rank their findings by gain, and render them.

Imports `evidence`, and finds `rules` by listing that folder. A single rule is a file in `rules`.
"""

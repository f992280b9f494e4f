"""Advice on a launch: ask every rule, order the findings, render them.

Imports `evidence`, and finds `rules` by listing that folder. A single rule is a file in `rules`.
"""

"""Evidence for the rules of advice: address use, trials of a change, and the time it can save.

Imports `counting`, `why` and `models`, never `rules` or `advice`.
"""

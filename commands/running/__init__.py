"""Implementation of the verbs: programs, sweeps, budgets and advice on a trace.

No option is declared in this folder.
"""

"""The work of the verbs: programs, sweeps, budgets and advice on a trace.

No option is declared here.
"""

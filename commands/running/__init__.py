"""What verbs run: programs, sweeps, sources that are counted live, budgets and advice on a trace.

No option is declared here.
"""

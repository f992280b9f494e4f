"""Interface of a model: the batches it takes, the steps it returns, the options of a replay.

Imports `base` and `jit` alone; every model imports it, and it imports none.
"""

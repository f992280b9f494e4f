"""What every stage uses: errors, options, TOML, the cache, claims on folders, executors.

Imports nothing of cutrace. Code that knows a trace, a kernel or a device belongs in a stage.
"""

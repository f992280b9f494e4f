"""Infrastructure of every stage: errors, options, TOML, cache, folder claims, executors.

It imports no other package of cutrace. Code that knows a trace, a kernel or a device belongs in a
stage.
"""

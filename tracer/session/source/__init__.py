"""Recording a source file: launch lines, scripts, first values of arrays, suggested launch lines.

Imports `front` and `session`. Compilers are in `front`.
"""

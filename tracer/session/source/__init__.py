"""Recording a source file: launch lines, scripts, the first values of arrays, and what to type.

What a launch does with them is in `launch`.
"""

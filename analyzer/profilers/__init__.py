"""File formats of NVIDIA's profilers: readers, and writers of logs that look like the profilers'
own.

One profiler per file; other packages use the values.
"""

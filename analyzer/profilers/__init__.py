"""File formats of NVIDIA's profilers: readers of ncu and nvprof output, and writers.

The writers imitate ncu, nvprof and the first profiler's log of 2008. One profiler per file; other
packages use the values.
"""

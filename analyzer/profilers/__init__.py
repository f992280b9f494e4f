"""Files of NVIDIA's profilers: those that are read, and the log of 2008 that is written.

One profiler a file; what is done with the values belongs elsewhere.
"""

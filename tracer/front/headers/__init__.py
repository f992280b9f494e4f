"""Texts of headers that nvcc provides and NVRTC lacks: prelude and stand-ins in CUDA C++.

`standin_headers.py` decides which of them a source needs; `toolkit.py` finds NVIDIA's own headers.
"""

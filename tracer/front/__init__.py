"""Compile or read source text to PTX text: CUDA C++ through NVRTC, or PTX as it is."""

"""Lists of the symbols that our library exports: those of CUDA's headers and of NVIDIA's files."""

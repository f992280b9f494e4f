"""Run unchanged CUDA programs: build with NVIDIA's nvcc, run on our library, record."""

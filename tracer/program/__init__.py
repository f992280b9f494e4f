"""Programs as they are: built by NVIDIA's nvcc, run on our runtime library, recorded as they go."""

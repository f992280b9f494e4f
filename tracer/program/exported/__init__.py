"""Which names our library exports: those of CUDA's headers, and of the files it stands in for."""

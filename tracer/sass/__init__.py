"""Machine code: read from a cubin, and lifted to operations that the engine knows."""

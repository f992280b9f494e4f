"""Device memory: arena, constant bank, device heap, textures and surfaces with their filtering.

Imports `kernel` and `ops`. Instructions that reach memory are in `access` and `texture`.
"""

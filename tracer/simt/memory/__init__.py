"""Device memory: arena, constant bank, device heap, textures and surfaces with their filtering.

Imports `kernel`, `ops` and `rows`. Instructions that reach memory are in `access` and `texture`.
"""

"""Instructions of textures and surfaces: `tex`, `tld4`, `suld`, `sust`, `sured`, queries.

Imports `access`, `decode`, `memory`, `warp` and `ops`. Filtering is in `memory/texture.py`.
"""

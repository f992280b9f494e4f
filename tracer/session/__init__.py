"""Sessions on the host side: device arrays, modules, textures, arguments, filters of a recording.

Imports `front`, `ptx`, `isa`, `simt` and `traces`. Running a kernel belongs in `simt`.
"""

"""Directions to places on the six faces of a cubemap (CUDA C++ Programming Guide, cubemaps).

The coordinate of the largest magnitude chooses the face, the others divided by it are the place
on it, from 0 to 1 each.
"""

import numpy as np

from ..lanes import Array

FACES = 6


def project(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Return the face (n,), and the two coordinates on it, of directions (n,); z wins a tie."""
    size_x, size_y, size_z = np.abs(x), np.abs(y), np.abs(z)
    along_z = (size_z >= size_x) & (size_z >= size_y)
    along_y = ~along_z & (size_y >= size_x)
    major = np.where(along_z, z, np.where(along_y, y, x))
    behind = major < 0
    face = np.where(along_z, 4, np.where(along_y, 2, 0)) + behind
    s = np.where(along_z, np.where(behind, -x, x), np.where(along_y, x, np.where(behind, z, -z)))
    t = np.where(along_y, np.where(behind, -z, z), -y)
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = ((each / np.abs(major) + 1) / 2 for each in (s, t))
    return face, s, t

"""Spheres, once in global and once in constant memory: the pictures must be the same."""

from os import environ
from pathlib import Path

import numpy as np

import cutrace

COUNT, WIDTH = int(environ.get("COUNT", "20")), int(environ.get("WIDTH", "64"))  # set by a sweep
HERE = Path(__file__).parent

i = np.arange(COUNT)
spheres = np.stack([(13 * i) % 64, (29 * i) % 64, (7 * i) % 32, 4 + i % 9], axis=1)
spheres = spheres.astype(np.float32)


def picture() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the picture in NumPy: the shade of the nearest sphere under each pixel."""
    row, column = np.mgrid[:WIDTH, :WIDTH].astype(np.float32)
    shade = np.zeros((WIDTH, WIDTH), np.float32)
    nearest = np.full((WIDTH, WIDTH), -1, np.float32)
    for x, y, z, radius in spheres:
        inside = radius**2 - (column - x) ** 2 - (row - y) ** 2
        height = np.sqrt(np.maximum(inside, np.float32(0)))
        is_visible = (inside > 0) & (z + height > nearest)
        nearest = np.where(is_visible, z + height, nearest)
        shade = np.where(is_visible, height / radius, shade)
    return shade


with cutrace.Session() as gpu:
    grid, block = (WIDTH // 16, WIDTH // 16), (16, 16)
    table = gpu.to_device(spheres, name="spheres")
    image = gpu.device_array((WIDTH, WIDTH), np.float32, name="image")
    ray_global = gpu.compile(HERE / "ray_global.cu").get_function("rayGlobal")
    ray_global[grid, block](image, table, COUNT, WIDTH)
    np.testing.assert_array_equal(image.copy_to_host(), picture())

    image.fill(0)
    module = gpu.compile(HERE / "ray_constant.cu")
    module.get_global("spheres").copy_to_device(np.pad(spheres, ((0, 32 - COUNT), (0, 0))))
    module.get_function("rayConstant")[grid, block](image, COUNT, WIDTH)
    np.testing.assert_array_equal(image.copy_to_host(), picture())

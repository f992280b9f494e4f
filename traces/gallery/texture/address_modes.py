"""A 2 x 2 image sampled at and beyond its edges, clamped and repeated."""

from pathlib import Path

import numpy as np

import cutrace

IMAGE = np.array([[1, 2], [3, 4]], np.float32)
column, row = np.meshgrid(np.arange(-2, 4), np.arange(-2, 4))
x, y = (((place + 0.5) / 2).astype(np.float32).ravel() for place in (column, row))
EXPECTED = {
    "clamp": IMAGE[row.clip(0, 1), column.clip(0, 1)],
    "wrap": IMAGE[row % 2, column % 2],
}

with cutrace.Session() as gpu:
    kernel = gpu.compile(Path(__file__).with_suffix(".cu")).get_function("sampleImage")
    result = gpu.device_array(x.size, np.float32, name="out")
    places = gpu.to_device(x, name="x"), gpu.to_device(y, name="y")
    for mode, expected in EXPECTED.items():
        image = gpu.texture(IMAGE, address_mode=mode, normalized_coords=True, name=mode)
        kernel[2, 32](result, *places, image, x.size)
        np.testing.assert_array_equal(result.copy_to_host(), expected.ravel())

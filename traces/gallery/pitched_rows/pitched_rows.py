"""100 rows of 60 floats, packed, and padded as cudaMallocPitch pads them."""

from pathlib import Path

import numpy as np

import cutrace

HEIGHT, WIDTH = 100, 60
image = np.arange(HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH)

with cutrace.Session() as gpu:
    row_scale = gpu.compile(Path(__file__).with_name("row_scale.cu")).get_function("rowScale")
    packed = gpu.to_device(image, name="packed")
    pitched = gpu.pitched_array((HEIGHT, WIDTH), np.float32, name="pitched")
    pitched.copy_to_device(image)
    for array, pitch in ((packed, WIDTH), (pitched, pitched.pitch // 4)):
        row_scale[(2, HEIGHT), 32](array, pitch, WIDTH)
        np.testing.assert_array_equal(array.copy_to_host(), 2 * image)

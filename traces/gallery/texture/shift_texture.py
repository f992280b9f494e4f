"""The shifted copy of ../shifted_copy, one word off, through a texture over linear memory."""

from pathlib import Path

import numpy as np

import cutrace

THREADS = 64 * 256
values = np.arange(THREADS + 32, dtype=np.float32)

with cutrace.Session() as gpu:
    kernel = gpu.compile(Path(__file__).with_suffix(".cu")).get_function("shiftTexture")
    texture = gpu.texture(gpu.to_device(values, name="in"))
    result = gpu.device_array(THREADS, np.float32, name="out")
    kernel[64, 256](result, texture, 1)
    np.testing.assert_array_equal(result.copy_to_host(), values[1 : THREADS + 1])

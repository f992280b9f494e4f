"""Gather neighbouring words directly from global memory, and through a texture."""

from pathlib import Path

import numpy as np

import cutrace

THREADS = 64 * 256
HERE = Path(__file__).parent

i = np.arange(THREADS, dtype=np.int32)
index = i // 16 * 16 + i * 7 % 16  # permutes sixteen neighbours
values = (i % 1000).astype(np.float32)

with cutrace.Session() as gpu:
    source, places = gpu.to_device(values, name="in"), gpu.to_device(index, name="index")
    result = gpu.device_array(THREADS, np.float32, name="out")
    straight = gpu.compile(HERE / "gather_global.cu").get_function("gatherGlobal")
    straight[64, 256](result, source, places)
    np.testing.assert_array_equal(result.copy_to_host(), values[index])

    result.fill(0)
    textured = gpu.compile(HERE / "gather_texture.cu").get_function("gatherTexture")
    textured[64, 256](result, gpu.texture(source), places)
    np.testing.assert_array_equal(result.copy_to_host(), values[index])

"""P = 10, 20, 40, 50, 20 at X = 0, 2, 4, 6, 8; the texture unit interpolates between entries."""

from pathlib import Path

import numpy as np

import cutrace

P = np.array([10, 20, 40, 50, 20], np.float32)
X = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], np.float32)

with cutrace.Session() as gpu:
    kernel = gpu.compile(Path(__file__).with_suffix(".cu")).get_function("tableLookup")
    table = gpu.texture(P, filter_mode="linear")
    x = gpu.to_device(X / 2 + np.float32(0.5), name="x")  # entry k is centred on k + 0.5
    result = gpu.device_array(X.size, np.float32, name="out")
    kernel[1, 32](result, x, table, X.size)
    between = [10, 10, 15, 20, 30, 40, 45, 50, 35, 20, 20]
    np.testing.assert_array_equal(result.copy_to_host(), between)

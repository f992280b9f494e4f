"""Ten steps of heat transfer on a 64 x 64 plate with insulated edges."""

from pathlib import Path

import numpy as np

import cutrace

WIDTH, STEPS, SPEED = 64, 10, np.float32(0.25)
plate = np.zeros((WIDTH, WIDTH), np.float32)
plate[20:30, 40:50] = 1024

with cutrace.Session() as gpu:
    kernel = gpu.compile(Path(__file__).with_suffix(".cu")).get_function("heatStep")
    now, following = gpu.to_device(plate, name="plate"), gpu.to_device(plate, name="next")
    for _ in range(STEPS):
        kernel[(4, 4), (16, 16)](following, gpu.texture(now), WIDTH, SPEED)
        now, following = following, now
        padded = np.pad(plate, 1, mode="edge")
        around = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
        plate += SPEED * (around - 4 * plate)
    np.testing.assert_array_equal(now.copy_to_host(), plate)

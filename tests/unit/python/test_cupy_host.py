"""What CuPy asks of libraries of machine code, done by NumPy in memory that both see."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutrace.tracer.program.startup import cupy_host


def address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


def test_arrays_are_sorted_along_their_last_axis_where_they_lie() -> None:
    thrust = SimpleNamespace()
    cupy_host.sort_on_host(thrust)
    data = np.array([[3, 1, 2], [9, 7, 8]], np.float32)
    thrust.sort(data.dtype, address(data), 0, data.shape)
    assert data.tolist() == [[1, 2, 3], [7, 8, 9]]


def test_orders_are_stable_and_the_last_key_comes_first() -> None:
    thrust = SimpleNamespace()
    cupy_host.sort_on_host(thrust)
    data, order = np.array([2, 1, 2, 1]), np.zeros(4, np.intp)
    thrust.argsort(data.dtype, address(order), address(data), 0, data.shape)
    assert order.tolist() == [1, 3, 0, 2]
    keys = np.array([[1, 2, 3, 4], [1, 0, 1, 0]])
    thrust.lexsort(keys.dtype, address(order), address(keys), 2, 4)
    assert order.tolist() == [1, 3, 0, 2]


def test_random_numbers_follow_the_seed_and_have_their_bounds() -> None:
    curand = SimpleNamespace()
    cupy_host.draw_on_host(curand)
    first, again = np.zeros((2, 1000), np.float32)
    generator = curand.createGenerator(100)
    for drawn in (first, again):
        curand.setPseudoRandomGeneratorSeed(generator, 7)
        curand.generateUniform(generator, address(drawn), 1000)
    assert (first == again).all()
    assert first.min() > 0
    assert first.max() <= 1
    curand.generateNormal(generator, address(first), 1000, 5.0, 0.1)
    assert first.mean() == pytest.approx(5, abs=0.02)  # six standard errors of 0.1 / sqrt(1000)
    words = np.zeros(1000, np.uint32)
    curand.generate(generator, address(words), 1000)
    assert len(np.unique(words)) > 990

from typing import Any

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.configuration import (
    Dim3,
    Limits,
    check_configuration,
    read_dimensions,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (256, (256, 1, 1)),
        ((20, 100), (20, 100, 1)),
        ((3, 3, 3), (3, 3, 3)),
        (np.int64(7), (7, 1, 1)),
        ([4, np.uint8(2)], (4, 2, 1)),
    ],
)
def test_dimensions_are_integers_or_up_to_three_of_them(given: Any, expected: Dim3) -> None:
    assert read_dimensions(given, "grid") == expected


@pytest.mark.parametrize("given", [1.0, "4", (1, 2.5), (), (1, 2, 3, 4), None])
def test_anything_else_is_no_dimension(given: Any) -> None:
    with pytest.raises(CutraceError, match=r"^block .*expected"):
        read_dimensions(given, "block")


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        # SEEDS 000.1: <<<g(20,100), b(3,3,3)>>>, <<<10, b>>>, <<<g, 256>>>
        ((20, 100, 1), (3, 3, 3)),
        ((10, 1, 1), (3, 3, 3)),
        ((20, 100, 1), (256, 1, 1)),
        ((2**31 - 1, 1, 1), (1024, 1, 1)),
        ((1, 65535, 65535), (4, 4, 64)),
    ],
)
def test_what_some_device_can_launch_is_accepted(grid: Dim3, block: Dim3) -> None:
    check_configuration("k", grid, block, 0, Limits())


@pytest.mark.parametrize(
    ("grid", "block", "problem"),
    [
        ((20, 100, 1), (2048, 1, 1), "block.x is 2048, expected 1 to 1024"),
        ((5, 1, 1), (20, 100, 1), "2000 threads a block, no device runs over 1024"),
        ((1, 1, 1), (1, 1, 65), "block.z is 65, expected 1 to 64"),
        ((1, 1, 1), (0, 1, 1), "block.x is 0, expected 1 to 1024"),
        ((2**31, 1, 1), (1, 1, 1), "grid.x is 2147483648, expected 1 to 2147483647"),
        ((1, 65536, 1), (1, 1, 1), "grid.y is 65536, expected 1 to 65535"),
        ((1, 1, -1), (1, 1, 1), "grid.z is -1, expected 1 to 65535"),
    ],
)
def test_what_no_device_can_launch_is_refused(grid: Dim3, block: Dim3, problem: str) -> None:
    with pytest.raises(CutraceError, match=problem):
        check_configuration("k", grid, block, 0, Limits())


def test_the_error_shows_the_launch_as_cuda_writes_it() -> None:
    with pytest.raises(CutraceError, match=r"^scale<<<\(5,2,1\), 2048, 16>>>: "):
        check_configuration("scale", (5, 2, 1), (2048, 1, 1), 16, Limits())


def test_static_and_dynamic_shared_memory_together_end_at_227_kb() -> None:
    static = Limits(shared_static=1024)
    check_configuration("k", (1, 1, 1), (1, 1, 1), 226 * 1024, static)
    with pytest.raises(CutraceError, match=r"232449 bytes .*\(1024 static, 231425 dynamic\)"):
        check_configuration("k", (1, 1, 1), (1, 1, 1), 226 * 1024 + 1, static)


def test_shared_memory_is_not_negative() -> None:
    with pytest.raises(CutraceError, match=r"-1 bytes of dynamic shared memory"):
        check_configuration("k", (1, 1, 1), (1, 1, 1), -1, Limits())


def test_launch_bounds_limit_the_threads_of_a_block() -> None:
    bounds = Limits(max_block=(128, 1, 1))
    check_configuration("k", (1, 1, 1), (16, 8, 1), 0, bounds)
    with pytest.raises(CutraceError, match=r"129 threads .* \(.maxntid\) allow 128"):
        check_configuration("k", (1, 1, 1), (129, 1, 1), 0, bounds)


def test_a_required_block_is_exact() -> None:
    required = Limits(required_block=(32, 4))
    check_configuration("k", (1, 1, 1), (32, 4, 1), 0, required)
    with pytest.raises(CutraceError, match=r"demands blocks of \(32, 4\)"):
        check_configuration("k", (1, 1, 1), (4, 32, 1), 0, required)

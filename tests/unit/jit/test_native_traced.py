"""What a NumPy function does to arrays, its compiled form does too."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutrace.jit.numpy_tracer import elementwise_of, statement
from cutrace.jit.ufunc_codegen import UntracedError

Array = NDArray[Any]


def mixed(a: Array, b: Array) -> Array:
    """Integers of several widths, comparisons, shifts by the width, choices."""
    wide = np.minimum(a, 40).astype(np.uint64) << np.uint64(3)
    moved = np.where(b > a, a >> np.uint32(7), b << a)
    return (moved ^ wide.astype(np.uint32)) + np.where(a == b, np.uint32(1), ~b)


def rounded(x: Array) -> Array:
    """Floats, their bits, NaNs."""
    whole = np.copysign(np.rint(np.abs(x) * 4.0), x) / 4.0
    bits = x.view(np.int64) >> 52 & 0x7FF
    return np.where(np.isnan(x) | (bits == 0), -0.0, whole)


def test_integers_are_computed_alike() -> None:
    numbers = np.array([0, 1, 2, 7, 31, 32, 33, 40, 1 << 31, 0xFFFF_FFFF], dtype=np.uint32)
    a, b = np.meshgrid(numbers, numbers)
    compiled = elementwise_of("mixed_by_test", mixed, ("u4", "u4"), "u4")
    np.testing.assert_array_equal(compiled(a, b), mixed(a, b))


def test_floats_are_computed_alike_to_the_bit() -> None:
    x = np.array([0.0, -0.0, 0.3, -0.375, 1e-310, np.inf, -np.inf, np.nan, 7.8], dtype=np.float64)
    compiled = elementwise_of("rounded_by_test", rounded, ("f8",), "f8")
    with np.errstate(invalid="ignore"):
        found, wanted = compiled(x), rounded(x)
    assert found.view(np.int64).tolist() == wanted.view(np.int64).tolist()


def test_a_statement_says_what_numpy_has_no_function_for() -> None:
    def zeros_above(x: Array) -> Array:
        found: Array = statement("call i64 @llvm.ctlz.i64(i64 {}, i1 false)", "u8", x)
        return found

    compiled = elementwise_of("zeros_by_test", zeros_above, ("u8",), "u8")
    numbers = np.array([1, 2, 0, 1 << 63], dtype=np.uint64)
    assert compiled(numbers).tolist() == [63, 62, 64, 0]  # of 64 bits


def test_what_has_no_statement_is_refused() -> None:
    with pytest.raises(UntracedError):
        elementwise_of("sine_by_test", np.sin, ("f8",), "f8")
    with pytest.raises(UntracedError):  # it looks at a value
        elementwise_of("branch_by_test", lambda x: x if x > 0 else -x, ("f8",), "f8")

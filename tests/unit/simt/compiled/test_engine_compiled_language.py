import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from cutrace.jit.loop_codegen import translate
from cutrace.jit.machine_code import address, compile_assembly
from cutrace.jit.structure import I32, U8, Struct
from cutrace.jit.value import trailing_zeros


class Counters(Struct):
    small: U8
    wide: I32
    total: int


def fill(c: Counters, n: int) -> int:
    for k in range(1, n):
        if k == 3 or (k > 6 and k % 2 == 0):
            continue
        c.small[k] = k * 100
        c.wide[k] = -k
        c.total += c.small[k]
        if k == 9:
            break
    return sum_of(c.wide[1:], n - 1)


def sum_of(words: I32, n: int) -> int:
    total = 0
    k = 0
    while k < n:
        total += words[k]
        k += 1
    return total if not total > 0 else -1


def bits(x: int) -> int:
    return 100 * x.bit_count() + 10 * trailing_zeros(x) + min(x, 3) - max(x & 1, (x >> 1) & 1)


def compiled(function: Callable[..., int], *kinds: type) -> Callable[..., int]:
    code = compile_assembly(translate([function]))(function.__name__)
    made: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code)
    return made


def counters() -> Counters:
    made = Counters()
    made.small, made.wide = np.zeros(12, dtype=np.uint8), np.zeros(12, dtype=np.int32)
    return made


def test_a_routine_does_as_machine_code_what_it_does_as_python() -> None:
    slow, fast = counters(), counters()
    with np.errstate(over="ignore"):
        slow.small = slow.small.astype(np.int64)  # Python's integers do not wrap to 8 bits
        expected = fill(slow, 12)
    found = compiled(fill, ctypes.c_void_p, ctypes.c_int64)(fast.address, 12)
    # 1, 2, 4, 5, 6, 7, 9 are visited: 3 and 8 are not, 9 ends the loop
    assert found == expected == -(1 + 2 + 4 + 5 + 6 + 7 + 9)
    np.testing.assert_array_equal(fast.wide, slow.wide)
    np.testing.assert_array_equal(fast.small, slow.small % 256)
    assert fast.total == 100 + 200 + 144 + 244 + 88 + 188 + 132  # of 100 k, the lowest 8 bits


@pytest.mark.parametrize("x", [1, 6, 40, 1 << 40])
def test_bits_are_counted_alike(x: int) -> None:
    assert compiled(bits, ctypes.c_int64)(x) == bits(x)


def test_an_array_of_any_kind_has_the_address_of_its_first_element() -> None:
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)
    fixed = whole.copy()
    fixed.setflags(write=False)
    views = (whole, whole[1:], whole[:, 2], whole.T, fixed, whole[:0], whole > 3)
    assert [address(view) for view in views] == [view.ctypes.data for view in views]


def test_a_copy_of_a_structure_has_its_own_integers_and_the_same_arrays() -> None:
    first = counters()
    first.total = 5
    second = first.copy()
    second.total, second.small = 7, np.ones(3, dtype=np.uint8)
    assert (first.total, second.total) == (5, 7)
    assert second.wide is first.wide
    assert first.small.tolist() == [0] * 12
    assert compiled(first_of_wide, ctypes.c_void_p)(second.address) == 0
    first.wide[0] = 9
    assert compiled(first_of_wide, ctypes.c_void_p)(second.address) == 9


def first_of_wide(c: Counters) -> int:
    return int(c.wide[0])

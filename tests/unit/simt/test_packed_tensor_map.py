"""Tensor maps of 10.0: numbers of 4 and 6 bits, and swizzles of 128 bytes with larger atoms.

The places follow from PTX ISA 5.5.1 (packing) and 5.5.6 (swizzle atomicity).
"""

import numpy as np
import pytest

from cutrace.tracer.simt.tma.tensor_map import (
    TILED,
    TensorMap,
    box_bytes,
    box_span,
    decode,
    elements_of,
    shared_places,
)

PACKED, PADDED_4, PADDED_6 = 13, 14, 15
"""CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, _16U4_ALIGN16B and _16U6_ALIGN16B."""


def map_of(element: int, columns: int, stride: int, box: int, swizzle: int = 0) -> TensorMap:
    return TensorMap(4096, TILED, element, (columns, 8), (stride,), (box, 8), (1, 1), swizzle)


@pytest.mark.parametrize("element", [PACKED, PADDED_4, PADDED_6])
@pytest.mark.parametrize("swizzle", range(7))
def test_a_map_keeps_its_type_and_its_swizzle(element: int, swizzle: int) -> None:
    tensor = map_of(element, 256, 192, 128, swizzle)
    assert decode(tensor.encode()) == tensor


def test_packed_numbers_are_moved_by_bytes() -> None:
    tensor = map_of(PACKED, 24, 16, 32)  # rows of 16 bytes, of which 12 are in the tensor
    places, inside = elements_of(tensor, (0, 0))
    assert places.tolist() == [*range(4096, 4096 + 128)]
    assert inside.reshape(8, 16).tolist() == [[k < 12 for k in range(16)]] * 8
    assert shared_places(tensor, 0, 128).tolist() == [*range(128)]
    assert (box_bytes(tensor), box_span(tensor)) == (128, 128)


@pytest.mark.parametrize(("element", "words"), [(PADDED_4, 2), (PADDED_6, 3)])
def test_sixteen_padded_numbers_take_16_bytes(element: int, words: int) -> None:
    row = 128 * words // 4  # bytes of 128 numbers: 64 of 4 bits, 96 of 6 bits
    tensor = map_of(element, 256, 2 * row, 128)
    places, inside = elements_of(tensor, (128, 1))  # the second half of each row, from row 1 on
    first = [4096 + 2 * row * (1 + m) + row + 4 * k for m in range(8) for k in range(row // 4)]
    assert places.tolist() == first
    assert inside.tolist() == [m < 7 for m in range(8) for _ in range(row // 4)]
    shared = [128 * m + 16 * g + 4 * k for m in range(8) for g in range(8) for k in range(words)]
    assert shared_places(tensor, 0, places.size).tolist() == shared
    assert (box_bytes(tensor), box_span(tensor)) == (8 * row, 8 * 128)


@pytest.mark.parametrize(
    ("swizzle", "place"),
    [  # row m, byte k of 128: which atom of a row an atom goes to depends on the row
        (4, lambda m, k: 32 * (k // 32 ^ m % 4) + k % 32),
        (5, lambda m, k: 32 * (k // 32 ^ m % 4) + (k % 32 ^ 8 * (m % 2))),
        (6, lambda m, k: 64 * (k // 64 ^ m % 2) + k % 64),
    ],
)
def test_atoms_of_32_and_64_bytes(swizzle: int, place: object) -> None:
    assert callable(place)
    tensor = TensorMap(4096, TILED, 0, (128, 8), (128,), (128, 8), (1, 1), swizzle)
    wanted = [128 * m + place(m, k) for m in range(8) for k in range(128)]
    found = shared_places(tensor, 0, 1024)
    assert found.tolist() == wanted
    assert np.unique(found).size == 1024

"""Boxes of tensor maps lie in shared memory, and are stored, as an NVIDIA H200 has them.

`tensor_maps.npz` is what the boxes of tests/cases/tensor_map_case.py left there (driver
580.159.04): shared memory up to the last byte of a load, which held 0xEE before, or global memory.
"""

from pathlib import Path

import numpy as np
import pytest
from cases.tensor_map_case import LOADS, STORES, BoxCase
from numpy.typing import NDArray

from cutrace.tracer.simt.tma.bulk_copy import pixels_of
from cutrace.tracer.simt.tma.tensor_map import IM2COL, decode, elements_of, loaded, shared_places
from cutrace.tracer.simt.tma.transfer import is_reduction, reduce_bytes

CHIP = np.load(Path(__file__).parent / "tensor_maps.npz")


def places_of(case: BoxCase) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    if case.tensor.kind == IM2COL:
        return pixels_of(case.tensor, case.corner, case.offsets)
    return elements_of(case.tensor, case.corner)


@pytest.mark.parametrize("name", [n for n in CHIP.files if n.startswith("load")])
def test_a_box_lies_in_shared_memory_as_on_the_chip(name: str) -> None:
    case, wanted = LOADS[name], CHIP[name]
    tensor = decode(case.tensor.encode())
    assert tensor == case.tensor
    places, inside = places_of(case)
    memory = case.memory()
    words = memory[: memory.size // tensor.size * tensor.size].view(f"u{tensor.size}")
    found = np.full(places.size, tensor.fill, words.dtype)
    found[inside] = loaded(tensor, words[places[inside] // tensor.size])
    box = np.full(16384, 0xEE, np.uint8)
    box.view(words.dtype)[shared_places(tensor, case.at, places.size) // tensor.size] = found
    assert box[: wanted.size].tobytes() == wanted.tobytes()
    assert (box[wanted.size :] == 0xEE).all()


@pytest.mark.parametrize("name", [n for n in CHIP.files if n.startswith("store")])
def test_a_box_is_stored_and_reduced_as_on_the_chip(name: str) -> None:
    case, tensor = STORES[name], STORES[name].tensor
    number = np.arange(8192)
    shared = ((number * 7 + (number >> 8)) & 0x3F).astype(np.uint8)
    memory = case.memory().copy()
    words = memory[: memory.size // tensor.size * tensor.size].view(f"u{tensor.size}")
    places, inside = places_of(case)
    held = shared_places(tensor, case.at, places.size)[inside] // tensor.size
    given, index = shared.view(words.dtype)[held], places[inside] // tensor.size
    if case.operation:
        assert is_reduction(case.operation, tensor.type)
        old = np.ascontiguousarray(words[index])
        reduce_bytes(old.view(np.uint8), given.view(np.uint8), case.operation, tensor.type, True)
        given = old
    words[index] = given
    assert memory.tobytes() == CHIP[name][: memory.size].tobytes()


def test_reductions_that_the_chip_stops_at_are_none() -> None:
    assert not is_reduction("xor", "u8")
    assert not is_reduction("min", "u16")

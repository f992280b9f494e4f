"""`wgmma` leaves what an NVIDIA H200 left, bit for bit: all types, and where descriptors point.

`wgmma.npz` is what the kernels of tests/cases/wgmma_kernel.py left there (driver 580.159.04), for
a few of the cases by whose numbers the inputs are made.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.wgmma_kernel import (
    DESCRIBED,
    HEAD,
    IMAGE,
    VALUE_DESCRIPTORS,
    as_registers,
    random_descriptors,
    random_image,
    registers_of,
    text_of,
    types_of,
    value_case,
    value_image,
)
from numpy.typing import NDArray

import cutrace

CHIP = np.load(Path(__file__).parent / "wgmma.npz")

VALUES = (2, 4, 6, 7, 9)
OTHERS = {"t": (3,), "neg": (2,), "sat": (3, 7)}
REGISTERS = (0, 1)
PLACES = (1, 2, 3, 7, 15, 23)


def run(name: str, images: Any, descriptors: Any, c: Any) -> NDArray[np.uint32]:
    with cutrace.Session() as gpu:
        given = [gpu.to_device(np.stack(each)) for each in (images, descriptors, c)]
        out = gpu.device_array(given[2].shape, np.uint32)
        module = gpu.load_ptx(HEAD + text_of(name))
        module.get_function(name)[len(images), 128, 0, IMAGE](*given, out)
        return out.copy_to_host()


@pytest.mark.parametrize("name", [n for n in CHIP.files if n[0] in "vtns"])
def test_products_of_every_type_are_the_chips(name: str) -> None:
    kind, types = name.partition("_")[0], types_of(name)
    numbers = OTHERS.get(kind, VALUES)
    cases = [value_case(types, number) for number in numbers]
    images = [value_image(a, b) for a, b, _ in cases]
    descriptors = [np.array(VALUE_DESCRIPTORS, np.uint64)] * len(cases)
    found = run(name, images, descriptors, [as_registers(c) for _, _, c in cases])
    assert np.count_nonzero(CHIP[name]) > CHIP[name].size / 3
    assert found.tobytes() == CHIP[name].tobytes()


def random_case(numbers: Sequence[int], columns: int, kind: str) -> tuple[Any, Any]:
    images = [random_image(number, kind) for number in numbers]
    return images, [np.array(random_descriptors(n, columns), np.uint64) for n in numbers]


@pytest.mark.parametrize("name", [n for n in CHIP.files if n[0] == "r"])
def test_the_first_factor_from_registers_is_the_chips(name: str) -> None:
    types = types_of(name)
    kind = types[1] if types[1] in ("f16", "bf16", "tf32") else "s8"
    images, descriptors = random_case(REGISTERS, 16, kind)
    c = [np.zeros((128, registers_of(16, types[0])), np.uint32)] * len(images)
    assert run(name, images, descriptors, c).tobytes() == CHIP[name].tobytes()


def numbers_of(name: str) -> tuple[int, ...]:
    if name == "m_n256":
        return (15,)
    return {"m": PLACES, "w": (5, 7), "x": (2, 7)}[name[0]]


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_descriptors_point_where_the_chip_reads(name: str) -> None:
    columns, types, _ = DESCRIBED[name]
    kind = types[1] if types[1] in ("f16", "bf16", "tf32") else "s8"
    images, descriptors = random_case(numbers_of(name), columns, kind)
    c = [np.zeros((128, registers_of(columns, types[0])), np.uint32)] * len(images)
    found: NDArray[Any] = run(name, images, descriptors, c)
    if CHIP[name].dtype == np.int16:
        found = found.view(np.float32).astype(np.int16)
    assert found.tobytes() == CHIP[name].tobytes()

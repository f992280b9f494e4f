"""Many kernels as one CUDA C text, and as one C++ text for the oracle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from fuzz.cuda.change import SLOTS
from fuzz.cuda.form import PRELUDE
from fuzz.cuda.kernel import ELEMENTS
from fuzz.cuda.matrix import FRAGMENTS
from fuzz.cuda.parameter import PARAMETERS
from fuzz.cuda.tree import Launch
from numpy.typing import NDArray

ORACLE = Path(__file__).with_name("oracle.h")
UNITS = Path(__file__).with_name("oracle_units.h")
DEVICE = Path(__file__).with_name("device.h")
OUTPUTS: dict[str, str] = {
    "out_i": "i4", "out_u": "u4", "out_l": "i8", "out_f": "f4", "out_d": "f8", "out_b": "u1",
    "out_h": "i2", "own": "u4", "sum_u": "u4", "sum_l": "u8", "own_h": "u4", "own_s": "u2",
    "own_c": "u1", "sum_h": "u4", "sum_s": "u2", "max_h": "u4",
}  # fmt: skip
"""The arrays that kernels write, and their types."""
Arrays = dict[str, NDArray[Any]]


class Source(Protocol):
    """A kernel with its launch; the seed chooses the values of its arguments."""

    @property
    def seed(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def launch(self) -> Launch: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    def text(self) -> str: ...


def cuda_text(kernels: Sequence[Source]) -> str:
    """The CUDA C of some kernels."""
    return DEVICE.read_text(encoding="utf-8") + kernels_text(kernels)


def kernels_text(kernels: Sequence[Source]) -> str:
    """The kernels, each in a namespace of its own, above what they have in common."""
    spaces = (f"namespace s_{k.name} {{\n{k.text()}}}\n" for k in kernels)
    return "\n".join((PRELUDE, FRAGMENTS, *spaces))


def oracle_text(kernels: Sequence[Source]) -> str:
    """The same kernels for g++.

    `run` takes a kernel's number, the arguments, an order of threads, and which zero is the lesser.
    """
    cases = "\n".join(f"    {_case(number, kernel)}" for number, kernel in enumerate(kernels))
    return (
        f'#include "{ORACLE.name}"\n{kernels_text(kernels)}\n'
        f'extern "C" int run(int number, void **a, int backwards, int zero)\n{{\n'
        f"    other_zero = zero;\n    switch (number) {{\n"
        f"{cases}\n    }}\n    return 2;\n}}\n"
    )


def _case(number: int, kernel: Source) -> str:
    launch = kernel.launch
    dims = ", ".join(
        f"dim3{{{', '.join(map(str, dim))}}}" for dim in (launch.grid, launch.block, launch.cluster)
    )
    values = ", ".join(_argument(name) for name in kernel.parameters)
    call = f"[=] {{ s_{kernel.name}::{kernel.name}({values}); }}"
    return f"case {number}: return launch({dims}, backwards, {call});"


def _argument(name: str) -> str:
    """A parameter, of the array of pointers to all arguments."""
    number = tuple(PARAMETERS).index(name)
    type_ = PARAMETERS[name].removesuffix(name).strip()
    return f"({type_})a[{number}]" if type_.endswith("*") else f"*({type_} *)a[{number}]"


_SIZES = {"sum_u": 48, "sum_l": 48, "sum_h": 1024, "sum_s": 64, "max_h": 64}
_ZEROS = ("sum_h", "max_h")
"""Halves: 77 would be one that sums round."""


def first_arrays(kernel: Source) -> Arrays:
    """What the arrays hold before a launch: inputs by seed, results of a pattern."""
    total = kernel.launch.blocks * kernel.launch.threads
    found: Arrays = dict(_inputs(kernel.seed % 8))
    for name, type_ in OUTPUTS.items():
        size = _SIZES.get(name, SLOTS * total) if name[:3] != "own" else 4 * total
        found[name] = np.full(size, 0 if name in _ZEROS else 77, type_)
    return {name: found[name] for name in PARAMETERS if name in found}


def scalars(kernel: Source) -> dict[str, np.generic]:
    """The scalar arguments."""
    k = kernel.seed % 8
    return {
        "n": np.int32((5, 0, -3, 7, 2147483647, 64, 3, 1)[k]),
        "w": np.uint32((7, 0x80000007, 0, 31, 0xFFFFFFFF, 32, 3, 68)[k]),
        "scale": np.float32((-1.5, 0.0, 2.0, -0.0, np.inf, 1e-40, 3.0, np.nan)[k]),
        "wide": np.int64((-3_000_000_000, 1, -1, 1 << 40, -(1 << 63), 0, 5, 68)[k]),
    }


_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-45, 3.4e38, -2.5,
            0.1, 65536.0, 2147483648.0, -2147483648.0, 1e10, 0.5, 16777217.0,
            1.17549435e-38)  # fmt: skip
_EDGES = (0, 1, -1, 2, 31, 32, 33, 255, 256, -128, 127, 65535, 2147483647, -2147483648, 5, 7)


def _inputs(kind: int) -> Arrays:
    """Small numbers, edges, special values and any bits, mixed."""
    raw = np.random.PCG64(kind + 1).random_raw(6 * ELEMENTS).reshape(6, ELEMENTS)
    choice, edge = raw[0] % np.uint64(4), (raw[1] % np.uint64(16)).astype(np.int64)
    small = (raw[2] % np.uint64(41)).astype(np.int64) - 8
    bits = raw[3].view(np.int64)
    special = np.array(_SPECIAL, "f8")[(raw[4] % np.uint64(len(_SPECIAL))).astype(np.int64)]
    whole = np.choose(choice.astype(np.int64), [small, small, np.array(_EDGES)[edge], bits])
    step = small / 4.0
    bits32 = (raw[3] >> np.uint64(11)).astype("u4").view("f4")
    with np.errstate(all="ignore"):
        floats = np.choose(choice.astype(np.int64), [step, step, special, bits32]).astype("f4")
        doubles = np.choose(choice.astype(np.int64), [step, special, special, bits.view("f8")])
    return {
        "in_i": whole.astype("i4"), "in_u": (whole + 3).astype("u4"), "in_f": floats,
        "in_d": doubles, "in_b": raw[5].astype("u1"), "in_l": whole,
    }  # fmt: skip

"""Kernels in PTX with constants to change, and what each counter must then be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import cutrace

Constants = Mapping[str, int]
Formula = Callable[[Constants], float]

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
SAMPLE = (
    HEAD
    + """
.visible .entry sample(.param .u64 out, .param .u64 image)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<4>;
    .reg .f32 %f<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [image];
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f40200000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f1, %f2}];
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd5, %rd3, %rd4;
    st.global.f32 [%rd5], %f3;
    ret;
}
"""
)


@dataclass(frozen=True)
class Case:
    """A kernel recorded with `first` constants, and again with `second`: the twin.

    `expected` gives each counter, for either, as a function of the constants.
    """

    record: Callable[[Path, Constants], Path]
    device: str
    first: Constants
    second: Constants
    expected: Mapping[str, Formula]
    options: Mapping[str, Any] = field(default_factory=dict)


def record_samples(path: Path, constants: Constants) -> Path:
    """Blocks of a warp sample row 2 of an image of 32 x 8 floats at points."""
    with cutrace.Session(path) as gpu:
        image = gpu.texture(np.zeros((8, 32), np.float32), name="image")
        result = gpu.device_array(32, np.float32, name="out")
        gpu.load_ptx(SAMPLE).get_function("sample")[constants["blocks"], 32](result, image)
    return path


QUADS = 8
CASES = [
    Case(
        record_samples,
        "h200",
        {"blocks": 3},
        {"blocks": 5},
        {
            "texture_requests": lambda c: c["blocks"],
            "texture_transactions": lambda c: c["blocks"] * QUADS,  # 4 floats in a row: a sector
            "texture_bytes_moved": lambda c: c["blocks"] * QUADS * 32,
            "texture_bytes_asked": lambda c: c["blocks"] * 32 * 4,
        },
    ),
]

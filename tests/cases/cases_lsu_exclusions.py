"""Copies to shared memory and loads of matrices, which Nsight Compute counts apart."""

from pathlib import Path

import numpy as np
from cases.counter_cases import Case, Constants

import cutrace

TEXT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry move(.param .u64 data)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<5>;
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 16;
    add.s64 %rd3, %rd1, %rd2;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r3, tile;
    add.s32 %r2, %r2, %r3;
    BODY
    ret;
}
"""
COPY = "cp.async.cg.shared.global [%r2], [%rd3], 16;"
LOAD = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];"


def record_moves(path: Path, constants: Constants) -> Path:
    """Blocks of a warp copy 512 bytes, and load a matrix of them, each so many times."""
    body = "\n".join([COPY] * constants["copies"] + [LOAD] * constants["matrices"])
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(128, np.float32, name="data")
        kernel = gpu.load_ptx(TEXT.replace("BODY", body)).get_function("move")
        kernel[constants["blocks"], 32](data)
    return path


APART = [
    Case(
        record_moves,
        "h200",
        {"blocks": 3, "copies": 2, "matrices": 1},
        {"blocks": 5, "copies": 1, "matrices": 4},
        {
            "smsp__sass_inst_executed_op_ldgsts.sum": lambda c: c["blocks"] * c["copies"],
            "smsp__sass_inst_executed_op_ldsm.sum": lambda c: c["blocks"] * c["matrices"],
        },
    ),
]

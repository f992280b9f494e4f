"""Kernels in PTX with constants to change, and what each counter must then be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import cutrace

Constants = Mapping[str, int]
Formula = Callable[[Constants], float]

SAMPLING = "    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f1, %f2}];"
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
"""
    + SAMPLING
    + """
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd5, %rd3, %rd4;
    st.global.f32 [%rd5], %f3;
    ret;
}
"""
)
ARITHMETIC = (
    HEAD
    + """
.visible .entry compute(.param .u64 data)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<4>;
    .reg .b16 %h<2>;
    .reg .f32 %f<2>;
    .reg .f64 %d<2>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.b16 %h1, 0;
    mov.f64 %d1, 0d0000000000000000;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    BODY
    ret;
}
"""
)
STRIDES = """
__constant__ float table[32];
__global__ void strides(float *out, const float *in)
{
    __shared__ float tile[32 * STRIDE];
    tile[threadIdx.x * STRIDE] = in[(blockIdx.x * 32 + threadIdx.x) * STRIDE];
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x * STRIDE] + table[threadIdx.x / SAME];
}
"""


@dataclass(frozen=True)
class Case:
    """A kernel recorded with `first` constants, and again with `second`: the twin.

    `device` replays both, or `other_device` the second. `expected` gives each counter, for either,
    as a function of the constants; `arrays` those that only arrays have, by array and counter.
    Constants named in `replayed` are options of the replay.
    """

    record: Callable[[Path, Constants], Path]
    device: str
    first: Constants
    second: Constants
    expected: Mapping[str, Formula]
    options: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[tuple[str, str], Formula] = field(default_factory=dict)
    replayed: tuple[str, ...] = ()
    other_device: str = ""


BULK_COPIES = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 data)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .reg .pred %p;
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [data];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 8192;
    add.s64 %rd1, %rd1, %rd2;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r2, 0;
    @%p bra END;
    mbarrier.init.shared.b64 [bar], 1;
    BODY
END:
    ret;
}
"""


def record_bulk_copies(path: Path, constants: Constants) -> Path:
    """A lane of each block copies `bytes` of its 8192 to shared memory and back, from `offset`."""
    place, size = f"[%rd1+{constants['offset']}]", constants["bytes"]
    lines = {
        "loads": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        f"[tile], {place}, {size}, [bar];",
        "stores": f"cp.async.bulk.global.shared::cta.bulk_group {place}, [tile], {size};",
        "reductions": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
        f"{place}, [tile], {size};",
    }
    body = [line for name, line in lines.items() for _ in range(constants[name])]
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(8192 * constants["blocks"], np.uint8, name="data")
        ptx = BULK_COPIES.replace("BODY", "\n    ".join(body))
        gpu.load_ptx(ptx).get_function("copy")[constants["blocks"], 32](data)
    return path


def record_samples(path: Path, constants: Constants) -> Path:
    """Blocks of a warp sample row 2 of an image of 32 x 8 floats at points, and again."""
    with cutrace.Session(path) as gpu:
        image = gpu.texture(np.zeros((8, 32), np.float32), name="image")
        result = gpu.device_array(32, np.float32, name="out")
        ptx = SAMPLE.replace(SAMPLING, "\n".join([SAMPLING] * constants["samples"]))
        gpu.load_ptx(ptx).get_function("sample")[constants["blocks"], 32](result, image)
    return path


def record_arithmetic(path: Path, constants: Constants) -> Path:
    """A warp loads words and computes, each instruction so many times."""
    loads = [f"ld.global.f32 %f1, [%rd4+{128 * n}];" for n in range(constants["loads"])]
    operations = {
        "half": "fma.rn.f16 %h1, %h1, %h1, %h1;",
        "single": "fma.rn.f32 %f1, %f1, %f1, %f1;",
        "double": "add.f64 %d1, %d1, %d1;",
    }
    body = [line for name, line in operations.items() for _ in range(constants[name])]
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(32 * constants["loads"], np.float32, name="data")
        ptx = ARITHMETIC.replace("BODY", "\n".join((*loads, *body)))
        gpu.load_ptx(ptx).get_function("compute")[1, 32](data)
    return path


def record_strides(path: Path, constants: Constants) -> Path:
    """Blocks of a warp pass words through shared memory, with gaps, and add a constant."""
    names = {"STRIDE": constants["stride"], "SAME": constants["same"]}
    words = 32 * constants["blocks"]
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(words * constants["stride"], np.float32, name="in")
        result = gpu.device_array(words, np.float32, name="out")
        module = gpu.compile(STRIDES, options=[f"-D{n}={v}" for n, v in names.items()])
        module.get_function("strides")[constants["blocks"], 32](result, data)
    return path


def record_rounds(path: Path, constants: Constants) -> Path:
    """A warp loads and stores so many lines, and loads so many constants, in rounds."""
    loads, stores, constants_ = (range(constants[n]) for n in ("loads", "stores", "constants"))
    a_round = (
        *(f"ld.global.f32 %f1, [%rd4+{128 * n}];" for n in loads),
        *(f"st.global.f32 [%rd4+{128 * (len(loads) + n)}], %f1;" for n in stores),
        *(f"ld.const.f32 %f1, [table+{256 * n}];" for n in constants_),
    )
    body = "\n".join(a_round * constants["rounds"])
    table = f".const .align 4 .b8 table[{256 * len(constants_)}];\n"
    ptx = ARITHMETIC.replace("BODY", body).replace(HEAD, HEAD + table)
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(32 * (len(loads) + len(stores)), np.float32, name="data")
        gpu.load_ptx(ptx).get_function("compute")[1, 32](data)
    return path


def flops(c: Constants) -> int:
    """Of 32 lanes: an fma is two operations."""
    return 32 * (2 * c["half"] + 2 * c["single"] + c["double"])


QUADS = 8
CASES = [
    Case(
        record_samples,
        "h200",
        {"blocks": 3, "samples": 2},
        {"blocks": 5, "samples": 4},
        {
            "texture_requests": lambda c: c["blocks"] * c["samples"],
            # 4 floats in a row: a sector
            "texture_transactions": lambda c: c["blocks"] * c["samples"] * QUADS,
            "texture_bytes_transferred": lambda c: c["blocks"] * c["samples"] * QUADS * 32,
            "texture_bytes_requested": lambda c: c["blocks"] * c["samples"] * 32 * 4,
            # each block on an SM of its own
            "texture_cache_misses": lambda c: c["blocks"] * QUADS,
            "texture_cache_hits": lambda c: c["blocks"] * QUADS * (c["samples"] - 1),
        },
    ),
    Case(
        record_samples,
        "k20",
        {"blocks": 3, "samples": 2},
        {"blocks": 5, "samples": 4},
        {
            "texture_cache_misses": lambda c: c["blocks"] * QUADS,
            "texture_cache_hits": lambda c: c["blocks"] * QUADS * (c["samples"] - 1),
        },
    ),
    Case(
        record_strides,
        "h200",
        {"blocks": 3, "stride": 2, "same": 8},
        {"blocks": 5, "stride": 4, "same": 2},
        {
            # a warp's 32 words with gaps lie in 4 sectors for each word of the stride
            "global_transactions": lambda c: c["blocks"] * (4 * c["stride"] + 4),
            "global_ideal_transactions": lambda c: c["blocks"] * 2 * 4,
            "global_excess_transactions": lambda c: c["blocks"] * 4 * (c["stride"] - 1),
            "global_bytes_transferred": lambda c: c["blocks"] * (4 * c["stride"] + 4) * 32,
            # so many lanes meet in a bank, once for the store and once for the load
            "shared_wavefronts": lambda c: c["blocks"] * 2 * c["stride"],
            "shared_ideal_wavefronts": lambda c: c["blocks"] * 2,
            "shared_conflicts": lambda c: c["blocks"] * 2 * (c["stride"] - 1),
            "constant_wavefronts": lambda c: c["blocks"] * 32 // c["same"],
            "constant_ideal_wavefronts": lambda c: c["blocks"],
            # in and out, tile twice, table
            "memory_requests": lambda c: c["blocks"] * 5,
        },
        arrays={
            ("in", "bytes_touched"): lambda c: c["blocks"] * 32 * 4,
            ("table", "bytes_touched"): lambda c: 32 // c["same"] * 4,
            ("table", "reuse"): lambda c: c["blocks"] * c["same"],
        },
    ),
    Case(
        record_arithmetic,
        "h200",
        {"loads": 2, "half": 3, "single": 4, "double": 5},
        {"loads": 3, "half": 1, "single": 2, "double": 7},
        {
            "flops_half": lambda c: 32 * 2 * c["half"],
            "flops_single": lambda c: 32 * 2 * c["single"],
            "flops_double": lambda c: 32 * c["double"],
            "flops": flops,
            "arithmetic_intensity": lambda c: flops(c) / (128 * c["loads"]),
            "compute_to_global_access_ratio": lambda c: flops(c) / (32 * c["loads"]),
        },
    ),
    Case(
        record_rounds,
        "h200",
        {"loads": 3, "stores": 4, "constants": 2, "rounds": 2},
        {"loads": 5, "stores": 6, "constants": 6, "rounds": 3},
        {
            # lines of 4 sectors; L1 misses in the first round
            "l1_reads": lambda c: 4 * c["loads"] * c["rounds"],
            "l1_read_hits": lambda c: 4 * c["loads"] * (c["rounds"] - 1),
            "l1_hit_rate": lambda c: (c["rounds"] - 1) / c["rounds"],
            "constant_cache_misses": lambda c: c["constants"],
            "constant_cache_hits": lambda c: c["constants"] * (c["rounds"] - 1),
            # a constant's line of 256 bytes is eight sectors; of the others each second was fetched
            # with the one before it
            "l2_reads": lambda c: 4 * c["loads"] + 8 * c["constants"],
            "l2_read_hits": lambda c: 2 * c["loads"],
            "l2_hit_rate": lambda c: 2 * c["loads"] / (4 * c["loads"] + 8 * c["constants"]),
            "dram_bytes_read": lambda c: 128 * c["loads"] + 256 * c["constants"],
            "l2_writes": lambda c: 4 * c["stores"] * c["rounds"],
            "l2_write_hits": lambda c: 4 * c["stores"] * (c["rounds"] - 1),
            # two lines may wait: all others are written, each round anew
            "dram_bytes_written": lambda c: 128 * (c["stores"] * c["rounds"] - 2),
        },
        options={"set": {"l2.ways": 64, "l2.bytes": 64 * 128, "l2.dirty_bytes": 2 * 128}},
    ),
]

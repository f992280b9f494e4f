"""One kernel in PTX that does everything that is counted, each thing as often as a constant says.

Every warp does the same. Global and shared accesses of 4 bytes have a stride; those of other widths
are in order. Values that are loaded go nowhere; those that an atomic returns are added up, so that
it is no reduction.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from cases.counter_cases import Constants

import cutrace

WIDTHS = {1: "u8", 2: "u16", 8: "u64", 16: "v4.u32"}
NONE = dict.fromkeys(
    (
        *("loads", "stores", "atomics", "reductions", "swaps"),
        *(f"{access}_{width}" for access in ("loads", "stores") for width in WIDTHS),
        *("shared_loads", "shared_stores", "shared_atomics", "shared_reductions", "shared_swaps"),
        *("local_loads", "local_stores", "const_loads", "uniform", "divergent"),
        *("barriers", "other_barriers", "integers", "conversions", "exchanges", "fences"),
        *(f"{p}_{op}" for p in ("half", "single", "double") for op in ("add", "mul", "fma")),
        *("specials", "predicated", "dynamic"),
    ),
    0,
)
PLAIN = NONE | {"blocks": 1, "warps": 1, "stride": 1, "ways": 1, "addresses": 1, "on": 32}
"""One warp that does nothing, in strides of one word."""

HEAD = """
.version 7.0
.target sm_70
.address_size 64
.const .align 4 .b32 table[64];
.visible .entry everything(.param .u64 data)
{
    .local .align 16 .b8 own[256];
    .shared .align 256 .b8 room[4096];
    .reg .b64 %rd<24>;
    .reg .b32 %r<16>;
    .reg .b16 %h<4>;
    .reg .f32 %f<4>;
    .reg .f64 %d<4>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r8, room;
    mov.u64 %rd7, table;
    mov.u64 %rd8, own;
    mov.b16 %h1, 0;
    mov.f64 %d1, 0d0000000000000000;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r10, 0;
    mov.u64 %rd10, 0;
    mul.wide.u32 %rd3, %r1, {stride_bytes};
    add.s64 %rd4, %rd2, %rd3;
    mul.lo.u32 %r5, %r1, {ways_bytes};
    add.u32 %r5, %r5, %r8;
    and.b32 %r6, %r1, {last_address};
    mul.wide.u32 %rd6, %r6, 4;
    add.s64 %rd9, %rd7, %rd6;
    and.b32 %r9, %r1, 31;
    setp.lt.u32 %p1, %r9, 32;
    setp.lt.u32 %p2, %r9, 16;
    setp.lt.u32 %p3, %r9, {on};
"""
FREE = 11
"""Instructions of HEAD that an assembler turns into nothing."""
INTEGER = 11
"""The others: they compute addresses and predicates."""
ADDRESS = 2
"""Instructions that compute the address of a width."""

ARITHMETIC = {
    "half_add": "add.f16 %h1, %h1, %h1;",
    "half_mul": "mul.f16 %h1, %h1, %h1;",
    "half_fma": "fma.rn.f16 %h1, %h1, %h1, %h1;",
    "single_add": "add.f32 %f1, %f1, %f1;",
    "single_mul": "mul.f32 %f1, %f1, %f1;",
    "single_fma": "fma.rn.f32 %f1, %f1, %f1, %f1;",
    "double_add": "add.f64 %d1, %d1, %d1;",
    "double_mul": "mul.f64 %d1, %d1, %d1;",
    "double_fma": "fma.rn.f64 %d1, %d1, %d1, %d1;",
    "specials": "rcp.approx.ftz.f32 %f1, %f1;",
    "integers": "xor.b32 %r10, %r10, %r1;",
    "conversions": "cvt.rn.f32.u32 %f1, %r1;",
    "exchanges": "shfl.sync.bfly.b32 %r10, %r10, 1, 31, 0xffffffff;",
    "fences": "membar.cta;",
    "predicated": "@%p3 add.f32 %f1, %f1, %f1;",
    "barriers": "bar.sync 0;",
    "other_barriers": "bar.sync 1;",
    "const_loads": "ld.const.u32 %r2, [%rd9];",
    "local_loads": "ld.local.u32 %r2, [%rd8];",
    "local_stores": "st.local.u32 [%rd8], %r1;",
    "shared_loads": "ld.shared.u32 %r2, [%r5];",
    "shared_stores": "st.shared.u32 [%r5], %r1;",
    "shared_atomics": "atom.shared.add.u32 %r3, [%r5], %r1;\nadd.u32 %r10, %r10, %r3;",
    "shared_reductions": "red.shared.add.u32 [%r5], %r1;",
    "shared_swaps": "atom.shared.cas.b32 %r3, [%r5], %r1, %r1;\nadd.u32 %r10, %r10, %r3;",
    "loads": "ld.global.u32 %r2, [%rd4];",
    "stores": "st.global.u32 [%rd4], %r1;",
    "atomics": "atom.global.add.u32 %r3, [%rd4], %r1;\nadd.u32 %r10, %r10, %r3;",
    "reductions": "red.global.add.u32 [%rd4], %r1;",
    "swaps": "atom.global.cas.b32 %r3, [%rd4], %r1, %r1;\nadd.u32 %r10, %r10, %r3;",
}
"""What a constant repeats."""


def record_everything(path: Path, constants: Constants) -> Path:
    """Launch the kernel once, with `dynamic` bytes of shared memory."""
    threads = 32 * constants["warps"]
    with cutrace.Session(path) as gpu:
        data = gpu.device_array(threads * 4 * max(4, constants["stride"]), np.uint8, name="data")
        data.fill(0)
        kernel = gpu.load_ptx("\n".join(_lines(constants))).get_function("everything")
        kernel[constants["blocks"], threads, 0, constants["dynamic"]](data)
    return path


def _lines(c: Constants) -> Iterator[str]:
    """The kernel's text."""
    strides = {"stride_bytes": 4 * c["stride"], "ways_bytes": 4 * c["ways"]}
    text = HEAD
    for name, number in {**strides, "last_address": c["addresses"] - 1, "on": c["on"]}.items():
        text = text.replace(f"{{{name}}}", str(number))
    yield text
    for name, line in ARITHMETIC.items():
        yield from [line] * c[name]
    for width, type_ in WIDTHS.items():
        if c[f"loads_{width}"] or c[f"stores_{width}"]:
            yield f"mul.wide.u32 %rd3, %r1, {width};\nadd.s64 %rd11, %rd2, %rd3;"
        value = {8: "%rd10", 16: "{%r2, %r2, %r2, %r2}"}.get(width, "%h1" if width == 2 else "%r2")
        into = {16: "{%r2, %r3, %r4, %r7}"}.get(width, value)
        yield from [f"ld.global.{type_} {into}, [%rd11];"] * c[f"loads_{width}"]
        yield from [f"st.global.{type_} [%rd11], {value};"] * c[f"stores_{width}"]
    for kind, predicate in (("uniform", "%p1"), ("divergent", "%p2")):
        for times in range(c[kind]):
            label = f"$after_{kind}_{times}"
            yield f"@{predicate} bra {label};\nadd.u32 %r10, %r10, 1;\n{label}:"
    yield "ret;\n}"

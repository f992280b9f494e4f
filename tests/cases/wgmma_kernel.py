"""PTX of kernels that run one wgmma a block over an image of shared memory, and their inputs.

The inputs are made of raw bits of PCG64, the same on every machine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IMAGE = 49152
Types = tuple[str, str, str]
INNER = {
    **dict.fromkeys(("f16", "bf16"), 16),
    "tf32": 8,
    **dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), 32),
    "b1": 256,
}
FORMS = {"f16": (5, 10, 2), "bf16": (8, 7, 2), "tf32": (8, 10, 4), "f32": (8, 23, 4),
         "e4m3": (4, 3, 1), "e5m2": (5, 2, 1)}  # fmt: skip
"""Bits of exponent and mantissa, and bytes."""

STYLES = ("near", "near", "wide", "wide", "wider", "sparse", "any", "low", "wide2", "cancel",
          "big", "near")  # fmt: skip
"""How the numbers of a case are distributed, by its number modulo 12."""

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 image[];
"""

_KERNEL = """
.visible .entry {name}(.param .u64 images, .param .u64 descs, .param .u64 c, .param .u64 d)
{{
.reg .b64 %p<12>; .reg .b64 %qa; .reg .b64 %qb; .reg .b64 %pc; .reg .b64 %pd; .reg .b32 %r<16>;
.reg .{kind} %d<{count}>; .reg .b32 %a<4>; .reg .pred %c<4>;
ld.param.u64 %p0, [images]; ld.param.u64 %p1, [descs]; ld.param.u64 %pc, [c];
ld.param.u64 %pd, [d]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
mul.wide.u32 %p2, %r1, {image}; add.u64 %p0, %p0, %p2;
mul.wide.u32 %p2, %r1, 16; add.u64 %p1, %p1, %p2;
mul.wide.u32 %p2, %r1, {block}; add.u64 %pc, %pc, %p2; add.u64 %pd, %pd, %p2;
mul.wide.u32 %p2, %r0, {thread}; add.u64 %pc, %pc, %p2; add.u64 %pd, %pd, %p2;
mov.u32 %r2, image; shl.b32 %r3, %r0, 4; mov.u32 %r4, %r3;
FILL: cvt.u64.u32 %p3, %r4; add.u64 %p3, %p0, %p3;
ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%p3];
add.u32 %r9, %r2, %r4; st.shared.v4.b32 [%r9], {{%r5, %r6, %r7, %r8}};
add.u32 %r4, %r4, 2048; setp.lt.u32 %c0, %r4, {image}; @%c0 bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
ld.global.v2.b64 {{%qa, %qb}}, [%p1];
shr.u32 %r10, %r2, 4; cvt.u64.u32 %p4, %r10; add.u64 %qa, %qa, %p4; add.u64 %qb, %qb, %p4;
{loads}cvt.u64.u32 %p6, %r3; add.u64 %p5, %p0, %p6;
ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%p5];
setp.ne.b32 %c1, 1, 0;
wgmma.fence.sync.aligned;
{products}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}ret;
}}
"""


def registers_of(columns: int, result: str) -> int:
    """Registers that a thread has of D."""
    return columns // 4 if result == "f16" else columns // 2


def mnemonic_of(columns: int, types: tuple[str, str, str], saturate: bool) -> str:
    """The instruction."""
    result, a, b = types
    shape = f"wgmma.mma_async.sync.aligned.m64n{columns}k{INNER[a]}"
    if a == "b1":
        return f"{shape}.s32.b1.b1.and.popc"
    return f"{shape}{'.satfinite' * saturate}.{result}.{a}.{b}"


def kernel(
    name: str, columns: int, types: tuple[str, str, str], turns: tuple[int, int] = (0, 0),
    from_registers: bool = False, times: int = 1, sign: int = 1, saturate: bool = False,
) -> str:  # fmt: skip
    """A kernel of one wgmma, `times` over; A from registers or shared memory."""
    count = registers_of(columns, types[0])
    kind = "f32" if types[0] == "f32" else "b32"
    more = "" if types[1] in ("s8", "u8", "b1") else f", {sign}, 1"
    if types[1] in ("f16", "bf16"):
        more += "".join(f", {turn}" for turn in turns[from_registers:])
    first = "{%a0, %a1, %a2, %a3}" if from_registers else "%qa"
    registers = ", ".join(f"%d{k}" for k in range(count))
    product = f"{mnemonic_of(columns, types, saturate)} {{{registers}}}, {first}, %qb, %c1{more};\n"
    return _KERNEL.format(
        name=name, kind=kind, count=count, image=IMAGE, block=512 * count, thread=4 * count,
        loads="".join(f"ld.global.{kind} %d{k}, [%pc+{4 * k}];\n" for k in range(count)),
        products=product * times,
        stores="".join(f"st.global.{kind} [%pd+{4 * k}], %d{k};\n" for k in range(count)),
    )  # fmt: skip


HALVES, BRAIN = ("f32", "f16", "f16"), ("f32", "bf16", "bf16")
DESCRIBED: dict[str, tuple[int, Types, tuple[int, int]]] = {
    **{f"m_{a}{b}": (16, HALVES, (a, b)) for a in (0, 1) for b in (0, 1)},
    **{f"w_{a}{b}": (64, BRAIN, (a, b)) for a in (0, 1) for b in (0, 1)},
    "x_r1": (64, HALVES, (0, 1)),
    "m_s8": (24, ("s32", "s8", "s8"), (0, 0)),
    "m_tf32": (24, ("f32", "tf32", "tf32"), (0, 0)),
    "m_n256": (256, ("f16", "f16", "f16"), (0, 0)),
    "m_b1": (32, ("s32", "b1", "b1"), (0, 0)),
}
"""Kernels with any descriptors: columns, types, and which factors are turned."""


def types_of(name: str) -> Types:
    """The types in a kernel's name, such as v_f32_f16_f16."""
    result, a, b = name.split("_")[1:]
    return result, a, b


def text_of(name: str) -> str:
    """The kernel of a name: v of one product, t of two, neg of a negated one, sat saturated, r of
    registers, or one with any descriptors."""
    if name in DESCRIBED:
        columns, types, turns = DESCRIBED[name]
        return kernel(name, columns, types, turns, from_registers=name == "x_r1")
    kind, types = name.partition("_")[0], types_of(name)
    if kind == "r":
        return kernel(name, 16, types, from_registers=True)
    sign = -1 if kind == "neg" else 1
    return kernel(name, 8, types, times=1 + (kind == "t"), sign=sign, saturate=kind == "sat")


def raw(seed: int, count: int) -> NDArray[np.uint64]:
    """Random numbers of 64 bits."""
    return np.asarray(np.random.PCG64(seed).random_raw(count), dtype=np.uint64)


def descriptor(start: int, leading: int, stride: int, base: int = 0, swizzle: int = 0) -> int:
    """A matrix in shared memory."""
    return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | base << 49 | swizzle << 62


VALUE_DESCRIPTORS = (descriptor(0, 128, 256), descriptor(4096, 128, 256))


def value_case(types: tuple[str, str, str], number: int) -> tuple[NDArray[Any], ...]:
    """A (64, inner), B (8, inner) and C (64, 8) as bits."""
    result, a, b = types
    inner = 32 // {"f16": 2, "bf16": 2, "tf32": 4}.get(a, 1)
    bits = raw(1000003 * number + sum(map(ord, result + a + b)), 72 * inner + 512)
    of_a, of_b = bits[: 64 * inner].reshape(64, inner), bits[64 * inner : 72 * inner]
    of_b, of_c = of_b.reshape(8, inner), bits[72 * inner :].reshape(64, 8)
    if a in ("s8", "u8", "b1"):
        return _integer_case(number, of_a, of_b, of_c)
    style = STYLES[number % len(STYLES)]
    first, second = _side(of_a, a, style), _side(of_b, b, style)
    if style == "cancel":
        exponent, mantissa, _ = FORMS[a]
        sign = 1 << (exponent + mantissa + (13 if a == "tf32" else 0))
        half = inner // 2
        first[:, half:] = first[:, :half] ^ first.dtype.type(sign)
        second[:, half:] = second[:, :half]
    kind = "f32" if result == "f32" else "f16"
    bias = (1 << (FORMS[kind][0] - 1)) - 1
    low = {"near": bias - 1, "cancel": bias - 12, "wide": bias - 10, "wide2": bias - 2,
           "wider": bias - 13, "sparse": bias - 8, "low": 0, "big": bias + 12}  # fmt: skip
    narrow = style in ("near", "cancel", "low")
    span = 6 if narrow else 28 if kind == "f32" else 14
    c = _floats(of_c, kind, (low.get(style, bias), span), style)
    return first, second, np.zeros_like(c) if number % 5 == 0 else c


def _integer_case(
    number: int, a: NDArray[np.uint64], b: NDArray[np.uint64], c: NDArray[np.uint64]
) -> tuple[NDArray[Any], ...]:
    scale = (0, 0, 1, 2)[number % 4]
    first: NDArray[Any] = (a >> np.uint64(5)).astype(np.uint8)
    second: NDArray[Any] = (b >> np.uint64(5)).astype(np.uint8)
    if scale == 1:
        first, second = first & 0x0F, second & 0x0F
    third: NDArray[Any] = (c >> np.uint64(7)).astype(np.uint32)
    if scale == 2:
        ends = (c >> np.uint64(7) & np.uint64(1)).astype(np.uint32) * np.uint32(0x7FFFFF00)
        third = ends ^ np.where(c & np.uint64(8), 0xFFFFFFFF, 0).astype(np.uint32)
    return first, second, third


def _side(bits: NDArray[np.uint64], kind: str, style: str) -> NDArray[Any]:
    """The elements of a factor."""
    width = FORMS[kind][0]
    bias = (1 << (width - 1)) - 1
    spans = {
        "near": (bias - 1, 3),
        "cancel": (bias - 1, 3),
        "wide": (bias - 5, 10 if width > 4 else 8),
        "wide2": (bias - 3, 6),
        "wider": (max(bias - 14, 0), min(28, (1 << width) - 2)),
        "sparse": (bias - 4, 8),
        "low": (40 if width == 8 else 0, 3),
        "big": (188 if width == 8 else (1 << width) - 5, 4),
    }
    return _floats(bits, kind, spans.get(style, (bias, 1)), style)


def _floats(bits: NDArray[np.uint64], kind: str, span: tuple[int, int], style: str) -> NDArray[Any]:
    """Floats with exponents from the first of `span` on, as many as the second, or any bits."""
    width, mantissa, size = FORMS[kind]
    raw_bits = bits.astype(object)
    exponent = np.clip(
        span[0] + (bits >> np.uint64(40)).astype(np.int64) % span[1], 0, (1 << width) - 2
    )
    low = (bits >> np.uint64(8) & np.uint64((1 << mantissa) - 1)).astype(np.int64)
    word = (bits & np.uint64(1)).astype(np.int64) << (width + mantissa) | exponent << mantissa | low
    if style == "any":
        word = np.array(raw_bits >> 3 & ((1 << (width + mantissa + 1)) - 1), dtype=np.int64)
    if style == "sparse":
        word = np.where((bits >> np.uint64(32)) % np.uint64(8) < 6, 0, word)
    if kind == "tf32":
        ignored = (bits >> np.uint64(50) & np.uint64(0x1FFF)).astype(np.int64)
        word = word << 13 | (ignored if style == "any" else 0)
    if kind == "e4m3" and style != "any":
        word = np.where(word & 0x7F == 0x7F, word ^ 1, word)
    found: NDArray[Any] = word.astype(f"u{size}")
    return found


def value_image(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.uint8]:
    """A and B in shared memory, by rows of 16 bytes, no swizzle."""
    image = np.zeros(IMAGE, np.uint8)
    for matrix, start in ((a, 0), (b, 4096)):
        rows = matrix.view(np.uint8).reshape(len(matrix), 32)
        for row, chunk in np.ndindex(len(matrix), 2):
            at = start + row // 8 * 256 + chunk * 128 + row % 8 * 16
            image[at : at + 16] = rows[row, 16 * chunk : 16 * chunk + 16]
    return image


def as_registers(c: NDArray[Any]) -> NDArray[np.uint32]:
    """Accumulators (64, columns) as registers (128 threads, registers)."""
    thread = np.arange(128)
    row = 16 * (thread // 32) + thread % 32 // 4
    parts = [
        c[row + 8 * (k % 4 // 2), 8 * (k // 4) + 2 * (thread % 4) + k % 2]
        for k in range(c.shape[1] // 2)
    ]
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(np.uint32)


def random_image(number: int, kind: str) -> NDArray[np.uint8]:
    """Shared memory full of small whole numbers of a type, or of any bytes."""
    bits = raw(77 + 13 * number, IMAGE // 8).view(np.uint8)
    if kind == "f16":
        return ((bits.view(np.uint16) % 9).astype(np.float16) - 4).view(np.uint8)
    if kind == "bf16":
        wide = ((bits.view(np.uint16) % 9).astype(np.float32) - 4).view(np.uint32) >> 16
        return wide.astype(np.uint16).view(np.uint8)
    if kind == "tf32":
        return ((bits.view(np.uint32) % 9).astype(np.float32) - 4).view(np.uint8)
    return bits


def random_descriptors(number: int, columns: int) -> tuple[int, int]:
    """Two matrices somewhere in shared memory, with any distances and swizzles."""
    bits = [int(each) for each in raw(5555 + number, 16)]
    found = []
    for side in range(2):
        own = bits[8 * side : 8 * side + 8]
        start = own[1] % 512 * 16 + side * 16384
        if number % 4 < 2:
            start &= ~1023
        if number % 4 == 2:
            start = (start & ~1023) + 32 * (own[1] >> 20 & 3)
        most = min(2032, 16000 // max(columns // 8 if side else 8, 1)) // 16
        stride = own[3] % most * 16
        if number % 3 == 0:
            stride = min(1024, most * 16)
        base = own[4] % 8 if number % 8 == 7 else 0
        found.append(descriptor(start, own[2] % most * 16, stride, base, own[0] % 4))
    return found[0], found[1]

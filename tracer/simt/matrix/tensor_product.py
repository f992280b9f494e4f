"""`tcgen05.mma`: products of tiles by one or two blocks (PTX ISA 9.7.16.10).

A is in shared or tensor memory, B in shared memory, D in tensor memory. The instruction descriptor
has the shape and the types. Of a pair of blocks the first has the first half of the rows of A and D
and of the columns of B; each multiplies its own rows by all columns. Row m, column n of a block's D
is in

- lane m, column n, for 128 rows a block,
- lane m % 16 + 32 (m / 16), column n, for 64 rows of one block (a lane of 16 in the address adds
  16), and for 64 rows a block of a pair with a sparse A,
- lane m + 64 (n / (N / 2)), column n % (N / 2), for 64 rows a block of a pair, or with `.ws`,
- lane m + 32 (n / (N / 4)), column n % (N / 4), for 32 rows with `.ws`.

A in tensor memory has the lanes of D's first columns, 32 bytes a row. The scale of a row, or of a
column, m is in lane m % 32 of its 32 lanes and column m / 32, in bytes from the descriptor's number
on, and for a K of 96 in the next such columns; of a pair with 64 rows a block those of the second
half of the columns are in lanes 64 to 95.
The metadata of a sparse A has the four bits of group g of a row in lanes 16 (m / 16) + m % 8 +
8 (g / 4), bits 4 (g % 4) + 16 (m / 8 % 2), for f16 and tf32; for narrower types in the row's own
lane, column g / 8. These are the layouts of CUTLASS's mma_traits_sm100_frag.hpp.

The arithmetic is that of ops/tile.py.
"""

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.kernel import Address, Immediate, Instruction, Operand, Vector
from ..decode.address import elements
from ..decode.decoder import Decoder, Fetch, StepTable
from ..ops.format import FORMATS
from ..ops.lanes import Array
from ..ops.tile import GROUP, Scales, multiply_floats
from ..tma.transfer import Lane, Site, fetch_address, lanes_of, site_of
from ..warp.program import Group, Step
from . import tensor_memory
from .ldmatrix import unpack_bytes
from .product import spread
from .shared_factor import factor_rows
from .tensor_memory import TensorMemory, blocks_of, memory_of, require_columns

ROW_BYTES = 32
"""Bytes of a row of A, or of a column of B."""

LONG_K = 96
"""K of a dense product of packed numbers whose descriptor has bit 31 (10.3)."""

_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_TYPES = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _NARROW,
    "mxf8f6f4": _NARROW,
    "i8": {0: "u8", 1: "s8"},
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
"""Types of A and B by kind and by their numbers in a descriptor."""

_RESULTS = {0: "f16", 1: "f32", 2: "s32"}
_RESULTS_OF = {"f16": ("f16", "f32"), "f8f6f4": ("f16", "f32"), "tf32": ("f32",), "i8": ("s32",)}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32}
_PACKED_BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
_BLOCKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers of an instruction: its kind, blocks of scales (0: none), and what it has."""

    kind: str
    blocks: int
    of_pair: bool
    is_sparse: bool
    is_stationary: bool
    is_shifted: bool

    @property
    def is_packed(self) -> bool:
        """Whether two numbers of 4 bits lie in a byte."""
        return self.kind in ("mxf4", "mxf4nvf4")


@dataclass(frozen=True, slots=True)
class Shape:
    """What an instruction descriptor says: rows and columns of D, K, the types of D, A and B."""

    rows: int
    columns: int
    inner: int
    types: tuple[str, str, str]
    negated: tuple[bool, bool]
    turned: tuple[bool, bool]
    saturates: bool
    selector: int
    scale_type: str
    scale_bytes: tuple[int, int]
    blocks: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a dense factor: K of 96 is longer."""
        return 48 if self.inner == LONG_K else ROW_BYTES


def read_shape(lane: Lane, site: Site, form: Form, bits: int) -> Shape:
    """Decode an instruction descriptor; KernelFault for one that the ISA does not have."""

    def refuse(why: str) -> Exception:
        text = f"takes {bits:#010x} as its instruction descriptor, {why},"
        return site.fault(lane, text, "descriptor")

    types = _TYPES[form.kind]
    a, b = bits >> 7 & 7, bits >> 10 & 7
    if form.is_packed:
        b = bits >> 10 & 3
    if a not in types or b not in types:
        raise refuse(f"whose types of A and B, {a} and {b}, kind::{form.kind} does not have")
    to = "f32" if form.blocks else _RESULTS.get(bits >> 4 & 3, "none")
    if not form.blocks and to not in _RESULTS_OF[form.kind]:
        raise refuse(f"whose type of D, {bits >> 4 & 3}, kind::{form.kind} does not have")
    if bool(bits >> 2 & 1) != form.is_sparse:
        raise refuse(f"whose bit 2 says that A is {'sparse' if bits >> 2 & 1 else 'dense'}")
    rows, columns = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    allowed: tuple[int, ...]
    if form.is_stationary:
        allowed, step = (32, 64, 128), 64
    else:
        allowed = (128, 256) if form.of_pair else (64, 128)
        # By the ISA, 128 rows need multiples of 16; a chip takes 8 columns of halves, too
        # (CUTLASS's SM100_MMA_F16BF16_SS).
        step = 16 if form.of_pair or (rows == 128 and form.kind != "f16") else 8
    if form.blocks and not form.of_pair:
        allowed, step = (128,), 8
    if rows not in allowed or not step <= columns <= 256 or columns % step:
        raise refuse(
            f"whose shape is {rows} x {columns}: M is one of {', '.join(map(str, allowed))}, N a "
            f"multiple of {step} up to 256"
        )
    size = 4 if form.is_packed else _BITS.get(types[a], 8)
    inner = 8 * ROW_BYTES // size * (2 if form.is_sparse else 1)
    blocks = form.blocks
    if form.is_packed and not form.is_sparse and bits >> 31:
        inner, blocks = LONG_K, blocks * LONG_K // inner
    scale_type = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    flags = [bool(bits >> place & 1) for place in (13, 14, 15, 16)]
    return Shape(
        rows, columns, inner, (to, types[a], types[b]), (flags[0], flags[1]),
        (flags[2], flags[3]), bool(bits >> 3 & 1) and not form.blocks,
        bits & 3, scale_type, (bits >> 29 & 3, bits >> 4 & 3), blocks,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of an instruction: addresses in tensor memory, and descriptors."""

    d: Fetch
    a: Fetch
    b: Fetch
    descriptor: Fetch
    adds: Fetch
    metadata: Fetch | None
    scales: tuple[Fetch, Fetch] | None
    mask: tuple[Fetch, ...]
    zeros: Fetch | None
    in_tensor_memory: bool
    exponent: int


def multiply(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a `tcgen05.mma`."""
    form = _form(decoder, instruction)
    operands = _operands(decoder, instruction, form)
    site, guard = site_of(decoder, instruction), decoder.guard()
    fixed = [operands.d, operands.a, operands.b, operands.descriptor, operands.adds]
    others = [*(operands.scales or ()), *operands.mask]
    others += [f for f in (operands.metadata, operands.zeros) if f]

    def product(group: Group) -> None:
        frame = group.frame
        values = [np.asarray(fetch(frame)) for fetch in (*fixed, *others)]
        values = [v.view(np.int64) if v.dtype == np.uint64 else v for v in values]
        for lane in lanes_of(group, guard, values):
            _multiply(lane, site, form, operands)

    return product


def _form(decoder: Decoder, instruction: Instruction) -> Form:
    modifiers = instruction.modifiers
    kind = next((m.partition("::")[2] for m in modifiers if m.startswith("kind::")), "")
    if kind not in _TYPES:
        raise decoder.refuse("cutrace does not know this kind of product")
    blocks = 0
    if "block_scale" in modifiers:
        plain = 1 if kind == "mxf8f6f4" else 2
        blocks = next((_BLOCKS[m] for m in modifiers if m in _BLOCKS), plain)
    return Form(
        kind, blocks, "cta_group::2" in modifiers, "sp" in modifiers, "ws" in modifiers,
        "ashift" in modifiers,
    )  # fmt: skip


def _operands(decoder: Decoder, instruction: Instruction, form: Form) -> Operands:
    rest = list(instruction.operands)
    d, a, b = rest.pop(0), rest.pop(0), rest.pop(0)
    in_tensor_memory = isinstance(a, Address)
    metadata = fetch_address(decoder, rest.pop(0)) if form.is_sparse else None
    descriptor = decoder.fetch(rest.pop(0), "u32")
    scales = None
    if form.blocks:
        scales = fetch_address(decoder, rest.pop(0)), fetch_address(decoder, rest.pop(0))
    mask: tuple[Operand, ...] = ()
    if isinstance(rest[0], Vector):
        mask = elements(rest.pop(0))
        if len(mask) != (8 if form.of_pair else 4):
            raise decoder.refuse(f"expected {8 if form.of_pair else 4} registers of lanes")
    adds = decoder.fetch(rest.pop(0), "pred")
    exponent, zeros = 0, None
    if rest and form.is_stationary:
        zeros = decoder.fetch(rest.pop(0), "u64")
    elif rest:
        scale = rest.pop(0)
        if not isinstance(scale, Immediate):
            raise decoder.refuse("expected a number that scales D")
        exponent = scale.bits
    return Operands(
        fetch_address(decoder, d),
        fetch_address(decoder, a) if in_tensor_memory else decoder.fetch(a, "b64"),
        decoder.fetch(b, "b64"), descriptor, adds, metadata, scales,
        tuple(decoder.fetch(e, "u32") for e in mask), zeros, in_tensor_memory, exponent,
    )  # fmt: skip


def _multiply(lane: Lane, site: Site, form: Form, operands: Operands) -> None:
    """Multiply for one lane, the instruction's issuer."""
    d, a, b, bits, adds, *others = lane.values
    shape = read_shape(lane, site, form, bits)
    scales = [others.pop(0) for _ in operands.scales or ()]
    mask = [others.pop(0) for _ in operands.mask]
    metadata = others.pop(0) if operands.metadata else 0
    if operands.zeros and others.pop(0):
        raise site.fault(lane, "masks columns of B, which cutrace leaves out,", "columns")
    blocks = blocks_of(lane, site, form.of_pair)
    rows = shape.rows // len(blocks)
    right = _factor_b(lane, site, form, shape, blocks, b)
    for number, block in enumerate(blocks):
        memory = memory_of(lane.group.wave, block)
        lanes, columns = _cells(form, rows, shape.columns, d >> 16)
        first = d & 0xFFFF
        span = first, first + int(columns.max()) + 1
        require_columns(lane, site, memory, d, span)
        if int(lanes.max()) >= 128:
            raise site.fault(lane, f"of D from lane {d >> 16} on at {d:#010x}", "lanes")
        cells = memory.cells[lanes, first + columns]
        left = _factor_a(lane, site, form, shape, block, (a, operands.in_tensor_memory), rows)
        if form.is_sparse:
            codes = _codes(lane, site, form, shape, memory, (metadata, d >> 16), rows)
            width = 4 if form.is_packed else _BITS.get(shape.types[1], 8)
            left = spread(left[..., None], codes[..., None], width)[..., 0]
        if form.kind == "i8":
            result = _integers(shape, left, right, cells if adds else np.zeros_like(cells))
        else:
            start = _start(shape, cells, operands.exponent) if adds else np.zeros(cells.shape)
            of_blocks = None
            if scales:
                of_blocks = _scales(lane, site, form, shape, memory, scales, rows)
            result = _floats(form, shape, left, right, start, of_blocks)
        words = mask[4 * number : 4 * number + 4]
        if words:
            off = np.array([words[k // 32] >> k % 32 & 1 for k in range(128)], np.bool_)
            result = np.where(off[lanes], cells, result)
        memory.cells[lanes, first + columns] = result


def _cells(
    form: Form, rows: int, columns: int, top: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the lanes and columns of D's elements, (rows, columns)."""
    m, n = np.arange(rows)[:, None], np.arange(columns)[None]
    if rows == 128:
        lane, column = m + 0 * n, n + 0 * m
    elif rows == 32:
        lane, column = m + 32 * (n // (columns // 4)), n % (columns // 4) + 0 * m
    elif form.is_stationary or (form.of_pair and not form.is_sparse):
        lane, column = m + 64 * (n // (columns // 2)), n % (columns // 2) + 0 * m
    else:
        lane, column = m % 16 + 32 * (m // 16) + 0 * n, n + 0 * m
    return lane + top, column


def _factor_a(
    lane: Lane, site: Site, form: Form, shape: Shape, block: int, where: tuple[int, bool], rows: int
) -> Array:
    """Return the patterns of a block's rows of A, (rows, K); half of K of a sparse A."""
    at, in_tensor_memory = where
    kind = shape.types[1]
    if not in_tensor_memory:
        size = _BITS.get(kind, 8) // 8 if shape.turned[0] else 0
        octets = factor_rows(lane, site, block, at, rows, shape.row_bytes, size)
        return _patterns(form, kind, octets, False)
    memory = memory_of(lane.group.wave, block)
    first = at & 0xFFFF
    require_columns(lane, site, memory, at, (first, first + ROW_BYTES // 4))
    lanes, _ = _cells(form, rows, 4, at >> 16)
    words = memory.cells[lanes[:, :1], first + np.arange(ROW_BYTES // 4)]
    if form.is_shifted:
        words = np.concatenate([words[1:], words[-1:]])
    return _patterns(form, kind, np.ascontiguousarray(words).view(np.uint8), True)


def _factor_b(
    lane: Lane, site: Site, form: Form, shape: Shape, blocks: tuple[int, ...], at: int
) -> Array:
    """Return the patterns of the columns of B, (columns, K), of the halves of a pair."""
    kind, count = shape.types[2], shape.columns // len(blocks)
    size = _BITS.get(kind, 8) // 8 if shape.turned[1] else 0
    row_bytes = shape.row_bytes * (2 if form.is_sparse else 1)
    parts = [factor_rows(lane, site, block, at, count, row_bytes, size) for block in blocks]
    return _patterns(form, kind, np.concatenate(parts), False)


def _patterns(form: Form, kind: str, octets: Array, in_tensor_memory: bool) -> Array:
    """Return the patterns of elements in rows of bytes. Narrow floats lie in bytes of tensor
    memory, those of 4 bits from bit 2 on; in shared memory 16 of them are packed at the start of 16
    bytes."""
    octets = np.ascontiguousarray(octets)
    if kind in _BITS:
        words = octets.view(f"u{_BITS[kind] // 8}")
        return words >> 13 if kind == "tf32" else words
    if form.is_packed:
        return np.stack([octets & 15, octets >> 4], axis=-1).reshape(len(octets), -1)
    if kind not in _PACKED_BITS:
        return octets
    bits = _PACKED_BITS[kind]
    if in_tensor_memory:
        patterns: Array = octets >> np.uint8(2 if bits == 4 else 0) & np.uint8((1 << bits) - 1)
        return patterns
    return unpack_bytes(octets.reshape(len(octets), -1, 16), bits).reshape(len(octets), -1)


def _codes(
    lane: Lane, site: Site, form: Form, shape: Shape, memory: TensorMemory,
    where: tuple[int, int], rows: int,
) -> NDArray[np.intp]:  # fmt: skip
    """Return the metadata of a sparse A: four bits for each group of a row, (rows, groups)."""
    at, top = where
    m = np.arange(rows)[:, None]
    if form.kind in ("f16", "tf32"):
        g = np.arange(8)[None]
        pitch = 16 if rows == 128 or form.is_stationary else 32
        lanes = pitch * (m // 16) + m % 8 + 8 * (g // 4) + (top % 32 if pitch == 32 else 0)
        shift, column = 4 * (g % 4) + 16 * (m // 8 % 2), 0 * g + shape.selector % 2
        first, span = (at & 0xFFFF) & ~1, 2
    else:
        g = np.arange(16)[None]
        own, _ = _cells(form, rows, 4, top)
        lanes, shift, column = own[:, :1] + 0 * g, 4 * (g % 8) + 0 * m, g // 8
        first, span = at & 0xFFFF, 2
    require_columns(lane, site, memory, at, (first, first + span))
    codes: NDArray[np.intp] = memory.cells[lanes, first + column].astype(np.intp) >> shift & 15
    return codes


def _scales(
    lane: Lane, site: Site, form: Form, shape: Shape, memory: TensorMemory, where: list[int],
    rows: int,
) -> Scales:  # fmt: skip
    """Return the scales of a block's rows of A and of all columns of B."""
    parts = []
    for side, (at, count) in enumerate(zip(where, (rows, shape.columns), strict=True)):
        number = np.arange(count)
        is_halved = side == 1 and form.of_pair and rows == 64
        half = count // 2 if is_halved else count
        lanes = number % half % 32 + 64 * (number // half)
        first = at & 0xFFFF
        byte = shape.scale_bytes[side] + np.arange(shape.blocks)
        if shape.inner != LONG_K:
            byte %= 4
        others = -(-count // 128) * 4 // (2 if is_halved else 1)
        columns = first + (number % half // 32)[:, None] + byte // 4 * others
        require_columns(lane, site, memory, at, (first, int(columns.max()) + 1))
        words = memory.cells[lanes[:, None], columns].astype(np.int64)
        parts.append((words >> 8 * (byte % 4) & 255)[None])
    kind = "ue8m0" if form.kind != "mxf4nvf4" else shape.scale_type
    return Scales(kind, *parts)


def _start(shape: Shape, cells: Array, exponent: int) -> Array:
    """Return D before the product, divided by 2 ** `exponent`."""
    if shape.types[0] == "f16":
        value = cells.astype(np.uint16).view(np.float16).astype(np.float64)
    else:
        value = np.ascontiguousarray(cells).view(np.float32).astype(np.float64)
    return value * 2.0**-exponent


def _floats(
    form: Form, shape: Shape, left: Array, right: Array, start: Array, scales: Scales | None
) -> Array:
    to, a, b = shape.types
    signs = [np.uint32(FORMATS[kind].sign if on else 0)
             for kind, on in zip((a, b), shape.negated, strict=True)]  # fmt: skip
    c = start.astype(np.float32).view(np.uint32)
    left, right = (m.astype(np.uint32) ^ s for m, s in zip((left, right), signs, strict=True))
    group = GROUP * (2 if form.is_sparse else 1) if form.is_packed else 1
    d = multiply_floats((to, a, b, "f32"), left[None], right[None], c[None], scales, group)[0]
    words: Array = d.astype(np.uint32)
    return words


def _integers(shape: Shape, left: Array, right: Array, cells: Array) -> Array:
    a, b = (
        np.ascontiguousarray(m).astype(np.uint8).view(np.int8 if kind == "s8" else np.uint8)
        for m, kind in zip((left, right), shape.types[1:], strict=True)
    )
    total = a.astype(np.int64) @ b.astype(np.int64).T
    total = total + np.ascontiguousarray(cells).view(np.int32)
    if shape.saturates:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    words: Array = (total & 0xFFFF_FFFF).astype(np.uint32)
    return words


_FORMS = {
    "alloc": tensor_memory.allocate,
    "dealloc": tensor_memory.deallocate,
    "relinquish_alloc_permit": tensor_memory.relinquish,
    "ld": tensor_memory.move,
    "st": tensor_memory.move,
    "cp": tensor_memory.copy,
    "shift": tensor_memory.shift,
    "commit": tensor_memory.commit,
    "mma": multiply,
    "wait::ld": tensor_memory.wait,
    "wait::st": tensor_memory.wait,
    "fence::before_thread_sync": tensor_memory.wait,
    "fence::after_thread_sync": tensor_memory.wait,
}
"""The instructions by their first modifier (PTX ISA 9.7.16)."""


def _decode_form(decoder: Decoder, instruction: Instruction) -> Step:
    return _FORMS[instruction.modifiers[0]](decoder, instruction)


STEPS: StepTable = {"tcgen05": _decode_form}

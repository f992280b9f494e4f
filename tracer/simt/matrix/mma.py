"""`mma.sync`: the layout of a warp's fragments, and the product in it (PTX ISA 9.7.14).

Of A, lane l holds row l / 4 and, for 16 rows, row l / 4 + 8. Of a row it holds as many contiguous
elements as a register takes, from column l % 4 times that many; further registers continue after
the columns of the other lanes. B has the same layout with columns for rows. Of C and D, a lane
holds columns 2 (l % 4) and the next.

A sparse A (ISA 9.7.14.6) has the fragment of half its columns. In each quad, the lanes from the
selector on hold its metadata.

With `.block_scale` (ISA 9.7.14.3) the two lanes of a quad that the thread number selects have the
scales of rows l / 4 and l / 4 + 8 of A, and one lane those of column l / 4 of B, in bytes from the
byte number on.

`mma.m8n8k4` of f16 is four products of 8 x 8 matrices, one per pair of quads of a warp
(`quad_product`). Lanes 4 q to 4 q + 3, and those plus 16, compute product q (ISA 9.7.14.5.1). Of A
and B a lane holds four elements of one row or column (the lower quad rows or columns 0 to 3), of C
and D eight: a row of f16, or a pattern of f32. It was made for compute capability 7.0; later
devices have it too, slower.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...ptx.kernel import Immediate, Instruction
from ..decode.address import elements
from ..decode.decoder import Decoder, Fetch, StepTable
from ..decode.shuffle_vote import by_warp
from ..ops.lanes import LANES, Array
from ..ops.tile import Scales
from ..warp.program import Group, Step
from .product import BITS, Layout, Product, Sparsity, each, numbered, width

_QUAD_TYPES = (("f16", "f16"), ("f32", "f32"), ("f32", "f16"))
_SPARSE = frozenset({"sp", "sp::ordered_metadata"})
_SHAPE = re.compile(r"m(\d+)n8k(\d+)")
_PACKED = frozenset({"kind::mxf4", "kind::mxf4nvf4"})
_BLOCKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_LANE = np.arange(LANES)


def factor(rows: int, columns: int, kind: str) -> NDArray[np.intp]:
    """Return the element numbers (rows, columns) of A; those of B are the transpose of the ones for
    its columns (8 rows)."""
    count = max(32 // width(kind), 1)
    row, column = np.arange(rows)[:, None], np.arange(columns)[None]
    lane = 4 * (row % 8) + column // count % 4
    register = row // 8 + column // (4 * count) * (rows // 8)
    return numbered(lane, register, column % count, kind)


def accumulator(rows: int, columns: int, kind: str) -> NDArray[np.intp]:
    """Return the element numbers (rows, columns) of C and D."""
    row, column = np.arange(rows)[:, None], np.arange(columns)[None]
    number = column // 8 * (rows // 4) + 2 * (row // 8) + column % 2
    register, place = np.divmod(number, each(kind))
    return numbered(4 * (row % 8) + column % 8 // 2, register, place, kind)


def layout_of(
    shape: tuple[int, int, int], types: tuple[str, str, str, str], a_columns: int
) -> Layout:
    """Return the layout of a product of rows, inner and columns (`shape`, in bits of `b1`); the
    registers of A hold `a_columns` columns."""
    rows, inner, columns = shape
    to, a_kind, right, start = types
    a, b = (
        factor(lines, count * BITS[kind] // width(kind), kind)
        for lines, count, kind in ((rows, a_columns, a_kind), (columns, inner, right))
    )
    place_of = np.argsort(accumulator(rows, columns, to).reshape(-1))
    return Layout(a[None], b.T[None], accumulator(rows, columns, start)[None], place_of)


def _decode_mma(decoder: Decoder, instruction: Instruction) -> Step:
    product = product_of(instruction)
    if product is None:
        raise decoder.refuse("cutrace does not know this shape or type of mma")
    matrices = instruction.operands[:4]
    if tuple(len(elements(o)) for o in matrices) != product.registers:
        raise decoder.refuse("expected {}, {}, {} and {} registers".format(*product.registers))
    if product.blocks:
        return _scaled_step(decoder, product, instruction)
    return multiply_step(decoder, product, instruction)


STEPS: StepTable = {"mma": _decode_mma}


def multiply_step(
    decoder: Decoder, product: Product, instruction: Instruction,
    scales: Callable[[Group], Scales] | None = None,
) -> Step:  # fmt: skip
    """Return the step of a product with operands D, A, B and C, then the metadata of a sparse A."""
    to, *sources = instruction.operands[:4]
    kind = "b64" if product.types[1] == "f64" else "b32"
    fetches = [[decoder.fetch(e, kind) for e in elements(source)] for source in sources]
    stores = [decoder.store(e, kind) for e in elements(to)]
    fetch = None
    if product.sparsity:
        (codes,) = elements(instruction.operands[4])  # in braces, or not
        fetch = decoder.fetch(codes, "b32")

    def multiply(group: Group) -> None:
        operands = [registers_of(group, part) for part in fetches]
        metadata = by_warp(group, fetch(group.frame)) if fetch else None
        if scales is None:
            results = product(operands, metadata)
        else:
            results = product.scaled(operands, metadata, scales(group))
        for store, register in zip(stores, results, strict=True):
            store(group.frame, register)

    return multiply


def _scaled_step(decoder: Decoder, product: Product, instruction: Instruction) -> Step:
    """Return the step of a product with scales, the last four operands."""
    operands = instruction.operands[-4:]
    fetches = [
        [decoder.fetch(e, "u32" if place % 2 == 0 else "u16") for e in elements(operand)]
        for place, operand in enumerate(operands)
    ]
    if [len(part) for part in fetches] != [1, 2, 1, 2]:
        raise decoder.refuse("expected scales, and the numbers of their byte and thread")
    rows, columns = product.layout.c.shape[1:]
    block = np.arange(product.blocks)

    def scales(group: Group) -> Scales:
        values = [[by_warp(group, f(group.frame)) for f in part] for part in fetches]
        (a,), a_at, (b,), b_at = values
        row, column = np.arange(rows), np.arange(columns)
        parts = []
        for scale, at, lane in (
            (a, a_at, 4 * (row % 8) + row // 8 + 2 * a_at[1][:, :1]),
            (b, b_at, 4 * column + b_at[1][:, :1]),
        ):
            word = np.take_along_axis(scale, lane.astype(np.intp) % LANES, axis=1)
            shift = 8 * (at[0][:, :1].astype(np.int64) + block) % 32
            parts.append(word.astype(np.int64)[:, :, None] >> shift[:, None] & 255)
        return Scales(product.scale, *parts)

    return multiply_step(decoder, product, instruction, scales)


def registers_of(group: Group, fetches: Sequence[Fetch]) -> Array:
    """Return the registers of a matrix, (n, warps, 32)."""
    return np.stack([by_warp(group, fetch(group.frame)) for fetch in fetches])


def product_of(instruction: Instruction) -> Product | None:
    """Return the product of an `mma`, None if cutrace does not support its shape or types."""
    modifiers = instruction.modifiers
    shape = next((m for m in map(_SHAPE.fullmatch, modifiers) if m), None)
    types = tuple(m for m in modifiers if m in BITS)
    is_sparse, is_scaled = not _SPARSE.isdisjoint(modifiers), "block_scale" in modifiers
    count = 4 + 2 * is_sparse + 4 * is_scaled
    if shape is None or len(types) != 4 or len(instruction.operands) != count:
        return None
    to, a_kind, right, start = types
    rows, inner = int(shape[1]), int(shape[2])
    if (rows, inner) == (8, 4) and a_kind != "f64":
        by_rows = tuple(m == "row" for m in modifiers if m in ("row", "col"))
        if (a_kind, right) != ("f16", "f16") or (to, start) not in _QUAD_TYPES or len(by_rows) != 2:
            return None
        return quad_product((by_rows[0], by_rows[1]), (to, start))
    is_packed = not _PACKED.isdisjoint(modifiers)
    if is_packed:
        a_kind, right = f"packed {a_kind}", f"packed {right}"
    if a_kind not in BITS or right not in BITS:
        return None
    form = to, a_kind, right, start
    selector = None
    if is_sparse:
        selector_operand = instruction.operands[5]
        if rows != 16 or not isinstance(selector_operand, Immediate):
            return None
        selector = selector_operand.bits
    blocks = next((_BLOCKS[m] for m in modifiers if m in _BLOCKS), 1 + is_packed)
    scale = next((m for m in modifiers if m in ("ue8m0", "ue4m3")), "")
    if is_scaled != bool(scale):
        return None
    return _product(
        rows, inner, form, "satfinite" in modifiers, "and" in modifiers, selector,
        any(m.startswith("kind::") for m in modifiers), (scale, blocks if is_scaled else 0),
    )  # fmt: skip


@cache
def _product(
    rows: int, inner: int, types: tuple[str, str, str, str], saturate: bool, both: bool,
    selector: int | None, since_10: bool, scaling: tuple[str, int],
) -> Product:  # fmt: skip
    to, a_bits, right, start = (BITS[kind] for kind in types)
    a_columns = inner if selector is None else inner // 2
    sizes = rows * 8, rows * a_columns, 8 * inner, rows * 8
    bits = max(to, 16), a_bits, right, max(start, 16)
    wide = 64 if a_bits == 64 else 32
    d, a, b, c = (n * b // (LANES * wide) for n, b in zip(sizes, bits, strict=True))
    sparsity = None if selector is None else sparsity_of(inner, a_bits, selector)
    layout = layout_of((rows, inner, 8), types, a_columns)
    return Product(
        types, layout, (d, a, b, c), inner, saturate, both, sparsity,
        since_10=since_10, scale=scaling[0], blocks=scaling[1],
    )  # fmt: skip


def sparsity_of(inner: int, bits: int, selector: int) -> Sparsity:
    """Return the layout of the metadata of 16 rows on an NVIDIA H200: a lane has those of four
    groups of two rows; for elements of 8 and 4 bits, those of eight groups of one row."""
    columns = {32: 2 * inner, 4: inner // 2}.get(bits, inner)
    row, group = np.arange(16)[:, None], np.arange(columns // 4)[None]
    lane = 4 * (row % 8) + columns // 16 * selector
    if bits > 8:
        lane, shift = lane + group // 4, 4 * (group % 4) + 16 * (row // 8)
    else:
        lane, shift = lane + row // 8 + 2 * (group // 8), 4 * (group % 8) + 0 * row
    return Sparsity(lane, shift.astype(np.uint32), bits)


_QUAD = _LANE % 16 // 4
_OWN = _LANE % 4 + 4 * (_LANE // 16)
_ELEMENTS = np.arange(4)[:, None]


@cache
def quad_product(by_rows: tuple[bool, bool], types: tuple[str, str]) -> Product:
    """Return D = A B + C; `by_rows` says whether A and B are row-major, `types` are those of D and
    C."""
    to, start = types
    row, column = _accumulator(to)
    layout = Layout(
        _numbers(*_factor(by_rows[0]), (8, 4), "f16"),
        _numbers(*_factor(not by_rows[1])[::-1], (4, 8), "f16"),
        _numbers(*_accumulator(start), (8, 8), start),
        (_QUAD * 64 + row * 8 + column).reshape(-1),
    )
    registers = 8 // each(to), 2, 2, 8 // each(start)
    return Product((to, "f16", "f16", start), layout, registers, 4)


def _numbers(row: Array, column: Array, shape: tuple[int, int], kind: str) -> NDArray[np.intp]:
    """Return the element numbers of four matrices (4, rows, columns); `row` and `column` (n, 32)
    are the coordinates of each lane's elements."""
    element = np.arange(len(row))[:, None]
    register, place = np.divmod(element, each(kind))
    numbers: NDArray[np.intp] = np.zeros((4, *shape), np.intp)
    numbers[_QUAD, row, column] = numbered(_LANE, register, place, kind)
    return numbers


def _factor(by_rows: bool) -> tuple[Array, Array]:
    """Return row and column in A of each lane's elements (4, 32); B's are transposed."""
    own, other = np.broadcast_arrays(_OWN[None], _ELEMENTS)
    if by_rows:
        return own, other
    return other + 4 * (_LANE[None] // 16), np.broadcast_to(_LANE[None] % 4, own.shape)


def _accumulator(kind: str) -> tuple[Array, Array]:
    """Return row and column in C and D of each lane's elements (8, 32)."""
    number = np.arange(8)[:, None]
    if kind == "f16":
        return np.broadcast_to(_OWN[None], (8, LANES)), np.broadcast_to(number, (8, LANES))
    row = (_LANE[None] & 1) + (number & 2) + 4 * (_LANE[None] // 16)
    return row, (number & 4) + (_LANE[None] & 2) + (number & 1)

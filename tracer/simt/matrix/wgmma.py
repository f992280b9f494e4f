"""`wgmma.mma_async`: products of matrices in shared memory by four warps (PTX ISA 9.7.15).

Each warp of a warpgroup has 16 of the 64 rows. It multiplies them when it issues the instruction,
which is one of the times that the ISA allows, so that a wait has nothing to do. The accumulators
have the layout of `mma.m16n8`, for each eight columns.

A sparse A (ISA 9.7.15.6) has half its columns in memory or registers. Each warp's lanes have the
metadata of its 16 rows as for `mma.sp`.
"""

import re
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ...ptx.kernel import Immediate, Instruction, Operand, Vector
from ...ptx.lines import source_line
from ..decode.address import elements
from ..decode.decoder import Decoder, Fetch, StepTable, skip
from ..decode.shuffle_vote import by_warp
from ..ops.lanes import Array
from ..tma.tensor_map import swizzled
from ..warp.program import Group, Step
from .mma import layout_of, registers_of, sparsity_of
from .product import BITS, Product, each, width

WARPS = 4
"""Warps per warpgroup."""

ROWS = 16
"""Rows per warp."""

_ROW_BYTES = 32
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape and the types of one `wgmma`, D = A B + D, and which factors are transposed in
    shared memory."""

    columns: int
    inner: int
    types: tuple[str, str, str]
    turned: tuple[bool, bool]
    is_sparse: bool = False

    def inner_of(self, side: int) -> int:
        """Return the columns of A in memory, or the rows of B."""
        return self.inner // 2 if self.is_sparse and side == 0 else self.inner

    def row_bytes(self, side: int) -> int:
        """Return the bytes of a row of A in memory, or of a column of B."""
        return _ROW_BYTES * (2 if self.is_sparse and side else 1)

    def read_factor(self, memory: NDArray[np.uint8], bits: int, side: int, first: int) -> Array:
        """Return the elements of a factor's rows (of B: its columns) from `first` on, (rows,
        inner), from a block's shared memory; IndexError if they are out of bounds."""
        rows = ROWS if side == 0 else self.columns
        descriptor = read_descriptor(bits)
        if self.turned[side]:
            places = by_columns(descriptor, first + rows, self.inner_of(side))[first:]
            octets = _gathered(memory, places[:, :, None] + np.arange(2)).reshape(rows, -1)
        else:
            places = by_rows(descriptor, first + rows, self.row_bytes(side))
            octets = _gathered(memory, places[first:])
        return octets.view(f"u{width(self.types[1 + side]) // 8}")


def _gathered(memory: NDArray[np.uint8], places: NDArray[np.int64]) -> Array:
    if int(places.max()) >= memory.size:
        raise IndexError(int(places.max()))
    return memory[places]


def _decode_wgmma(decoder: Decoder, instruction: Instruction) -> Step:
    modifiers = set(instruction.modifiers)
    if "fence" in modifiers:
        return _fence
    if modifiers & {"commit_group", "wait_group"}:
        return skip(decoder, instruction)
    metadata: Operand | None = None
    if "sp" in modifiers:
        metadata, selector = instruction.operands[3:5]
        operands = (*instruction.operands[:3], *instruction.operands[5:])
        instruction = replace(instruction, operands=operands)
        shape, product = _product(decoder, instruction, _number(selector))
    else:
        shape, product = _product(decoder, instruction)
    to, a_operand, right, scale = instruction.operands[:4]
    if len(elements(to)) != product.registers[0]:
        raise decoder.refuse(f"expected {product.registers[0]} registers")
    if isinstance(a_operand, Vector) and len(a_operand.elements) != 4:
        raise decoder.refuse("expected four registers of the first factor")
    return _multiply(decoder, shape, product, (to, a_operand, right, scale), metadata)


STEPS: StepTable = {"wgmma": _decode_wgmma}


def _fence(group: Group) -> None:
    group.wave.fenced[group.warps] = True


def _product(
    decoder: Decoder, instruction: Instruction, selector: int | None = None
) -> tuple[Shape, Product]:
    modifiers = instruction.modifiers
    shape = next((m for m in map(_SHAPE.fullmatch, modifiers) if m), None)
    types = tuple(m for m in modifiers if m in BITS)
    times = 1 if selector is None else 2
    if shape is None or len(types) != 3 or not _fits(types, int(shape[1]), int(shape[2]) // times):
        raise decoder.refuse("cutrace does not know this shape or type of wgmma")
    to, a_kind, right = types
    numbers = [_number(operand) for operand in instruction.operands[4:]]
    signs = (numbers[0], numbers[1]) if len(numbers) > 1 else (1, 1)
    from_registers = isinstance(instruction.operands[1], Vector)
    transposes = [False] * from_registers + [bool(n) for n in numbers[2:]]
    turned = (transposes[0], transposes[1]) if len(transposes) > 1 else (False, False)
    columns, inner = int(shape[1]), int(shape[2])
    product = _of_warp(
        (ROWS, inner, columns), (to, a_kind, right, to), from_registers,
        "satfinite" in modifiers, (signs[0] < 0, signs[1] < 0), selector,
    )  # fmt: skip
    return Shape(columns, inner, (to, a_kind, right), turned, selector is not None), product


@cache
def _of_warp(
    shape: tuple[int, int, int], types: tuple[str, str, str, str], from_registers: bool,
    saturate: bool, negated: tuple[bool, bool], selector: int | None,
) -> Product:  # fmt: skip
    """Return the product of one warp; B is given, and A if it is not in registers."""
    layout = layout_of(shape, types, shape[1] if selector is None else shape[1] // 2)
    sparsity = None if selector is None else sparsity_of(shape[1], BITS[types[1]], selector)
    count = shape[2] // 2 // each(types[0])
    registers = count, 4 * from_registers, 0, count
    given = not from_registers, True
    return Product(
        types, layout, registers, layout.b.shape[1], saturate, both=True, sparsity=sparsity,
        of_warpgroup=True, given=given, negated=negated,
    )  # fmt: skip


def _fits(types: tuple[str, ...], columns: int, inner: int) -> bool:
    """Return whether the product exists: 256 bits of K, and at most 256 columns in steps of
    eight."""
    integers = types[1] in ("s8", "u8", "b1")
    most = columns % 8 == 0 and 8 <= columns <= 256
    is_valid_width = columns in (8, 24) or columns % 16 == 0 if integers else True
    return most and is_valid_width and inner * BITS[types[1]] == 8 * _ROW_BYTES


def _number(operand: Operand) -> int:
    if not isinstance(operand, Immediate):
        raise ValueError("a register where a number is expected")
    return operand.bits - (1 << 64) if operand.bits >= 1 << 63 else operand.bits


def _multiply(
    decoder: Decoder, shape: Shape, product: Product,
    operands: tuple[Operand, Operand, Operand, Operand], metadata: Operand | None,
) -> Step:  # fmt: skip
    to, a_operand, right, scale = operands
    starts = [decoder.fetch(e, "b32") for e in elements(to)]
    stores = [decoder.store(e, "b32") for e in elements(to)]
    in_registers = isinstance(a_operand, Vector)
    firsts = [decoder.fetch(e, "b32") for e in elements(a_operand)] if in_registers else []
    descriptors = [None if in_registers else decoder.fetch(a_operand, "b64")]
    descriptors.append(decoder.fetch(right, "b64"))
    adds = None if isinstance(scale, Immediate) else decoder.fetch(scale, "pred")
    always = isinstance(scale, Immediate) and scale.bits != 0
    lanes, pc = None if metadata is None else decoder.fetch(metadata, "b32"), decoder.pc

    def multiply(group: Group) -> None:
        _require_fence(decoder, group, pc)
        start = registers_of(group, starts)
        if adds is not None:
            accumulates = by_warp(group, adds(group.frame))[:, 0]
            start = np.where(accumulates[:, None], start, np.uint32(0))
        elif not always:
            start = np.zeros_like(start)
        try:
            factors = [
                np.zeros((start.shape[1], _elements_of(shape, side)), np.int64)
                if descriptor is None
                else _factor(group, shape, descriptor, side)
                for side, descriptor in enumerate(descriptors)
            ]
        except IndexError as problem:
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: kernel `{group.wave.program.name}`: the "
                f"descriptor of a factor of `wgmma` reaches shared address {problem.args[0]:#x}, "
                f"and the block has {group.wave.shared.shape[1]} bytes",
                "outside",
            ) from None
        a = [registers_of(group, firsts)] if firsts else []
        if product.sparsity and lanes is not None:
            stored = product.stored(a[0]) if a else factors[0].T.reshape(ROWS, -1, len(factors[0]))
            whole = product.sparsity.expand(stored, by_warp(group, lanes(group.frame)))
            factors[0] = whole.reshape(-1, whole.shape[2]).T.astype(np.int64)
        results = product([*a, start], given=np.concatenate(factors, axis=1))
        for store, register in zip(stores, results, strict=True):
            store(group.frame, register)

    return multiply


def _require_fence(decoder: Decoder, group: Group, pc: int) -> None:
    missing = group.warps[~group.wave.fenced[group.warps]]
    if missing.size:
        wave = group.wave
        block = int(wave.blocks_of(missing[:1])[0])
        raise KernelFault(
            f"{source_line(decoder.kernel, pc)}: warp {int(missing[0]) % wave.warps_a_block} of "
            f"block {block} multiplies without a `wgmma.fence` before it, which PTX leaves "
            "undefined: call warpgroup_arrive() first"
        )


def _elements_of(shape: Shape, side: int) -> int:
    rows = ROWS if side == 0 else shape.columns
    return rows * shape.row_bytes(side) * 8 // width(shape.types[1 + side])


def _factor(group: Group, shape: Shape, fetch: Fetch, side: int) -> Array:
    """Return the elements of a factor in shared memory, (warps of the group, elements)."""
    descriptors = by_warp(group, fetch(group.frame))[:, 0].view(np.uint64)
    wave = group.wave
    factors = np.zeros((len(descriptors), _elements_of(shape, side)), np.int64)
    cache: dict[tuple[int, int, int], Array] = {}
    for row, warp in enumerate(group.warps.tolist()):
        bits = int(descriptors[row])
        block, quarter = divmod(warp, wave.warps_a_block)
        key = block, bits, 0 if side else ROWS * (quarter % WARPS)
        if key not in cache:
            read = shape.read_factor(wave.shared[block], bits, side, key[2])
            cache[key] = (read.T if side else read).reshape(-1)
        factors[row] = cache[key]
    return factors


Places = NDArray[np.int64]

CHUNK = 16
_WIDTHS = (1, 8, 4, 2)
"""Contiguous chunks per atom, by the descriptor's number for the swizzle."""

_SWIZZLES = (0, 7, 3, 1)
"""Bits of the row number that are XORed into the chunk number."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The fields of a descriptor: bytes, the first row of the swizzle, and its number."""

    start: int
    leading: int
    stride: int
    base: int
    swizzle: int


def read_descriptor(bits: int) -> Descriptor:
    """Decode a 64-bit descriptor."""
    start, leading, stride = (CHUNK * (bits >> at & 0x3FFF) for at in (0, 16, 32))
    return Descriptor(start, leading, stride, bits >> 49 & 7, bits >> 62 & 3)


@lru_cache(maxsize=256)
def by_rows(descriptor: Descriptor, rows: int, row_bytes: int) -> Places:
    """Return the offset of each byte of a row, (rows, row_bytes): K is the contiguous dimension.

    A loop over K reads few places again and again.
    """
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)[None]
    width = _WIDTHS[descriptor.swizzle]
    across = CHUNK if descriptor.swizzle else descriptor.leading
    place = row % 8 * width * CHUNK + row // 8 * descriptor.stride
    return _moved(descriptor, place + byte // CHUNK * across + byte % CHUNK)


@lru_cache(maxsize=256)
def by_columns(descriptor: Descriptor, rows: int, inner: int, size: int = 2) -> Places:
    """Return the offset of the first byte of each element of `size` bytes, (rows, inner): the rows
    are the contiguous dimension."""
    row, k = np.arange(rows)[:, None], np.arange(inner)[None]
    width, elements_ = _WIDTHS[descriptor.swizzle], CHUNK // size
    chunk = row // elements_
    if descriptor.swizzle:
        place = chunk % width * CHUNK + chunk // width * descriptor.leading
        place = place + k % 8 * width * CHUNK + k // 8 * descriptor.stride
    else:
        place = chunk * descriptor.stride + k % 8 * CHUNK + k // 8 * descriptor.leading
    return _moved(descriptor, place + row % elements_ * size)


def _moved(descriptor: Descriptor, places: Places) -> Places:
    places = places + descriptor.start
    return swizzled(places, _SWIZZLES[descriptor.swizzle], descriptor.base)

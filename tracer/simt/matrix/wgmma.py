"""`wgmma.mma_async`: products of matrices in shared memory by four warps (PTX ISA 9.7.15).

Each warp of a warpgroup has 16 of the 64 rows. It multiplies them when it issues the instruction,
which is one of the times that the ISA allows, so that a wait has nothing to do. The accumulators
have the layout of `mma.m16n8`, for each eight columns.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ...ptx.kernel import Immediate, Instruction, Operand, Vector
from ...ptx.lines import source_line
from ..access.address import elements
from ..ops import tensor
from ..ops.lanes import LANES, Array
from ..tma.tensor_map import swizzled
from ..warp.decoder import Decoder, Fetch, StepTable, skip
from ..warp.program import Group, Step
from ..warp.shuffle_vote import by_warp, put
from .mma import accumulator, factor
from .product import BITS

WARPS = 4
"""Warps per warpgroup."""

ROWS = 16
"""Rows per warp."""

_ROW_BYTES = 32
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Product:
    """The types and shape of one `wgmma`: D = A B + D, for the rows of one warp."""

    columns: int
    inner: int
    types: tuple[str, str, str]
    saturate: bool
    signs: tuple[int, int]
    turned: tuple[bool, bool]

    @property
    def registers(self) -> int:
        """Registers of D per lane."""
        return self.columns // (4 if self.types[0] == "f16" else 2)

    def read_rows(self, memory: NDArray[np.uint8], bits: int, side: int, first: int) -> Array:
        """Return the bits of a factor's rows (of B: its columns) from `first` on, (rows, inner),
        from a block's shared memory; IndexError if they are out of bounds."""
        rows = ROWS if side == 0 else self.columns
        descriptor = read_descriptor(bits)
        if self.turned[side]:
            places = by_columns(descriptor, first + rows, self.inner)[first:]
            return _gathered(memory, places[:, :, None] + np.arange(2)).reshape(rows, -1)
        places = by_rows(descriptor, first + rows, _ROW_BYTES)[first:]
        return _gathered(memory, places)

    def elements(self, rows: Array, side: int) -> Array:
        """Return bytes of rows (..., 32) as elements (..., inner) of their own width."""
        kind = self.types[1 + side]
        width = 32 if kind == "b1" else BITS[kind]
        return np.ascontiguousarray(rows).view(f"u{width // 8}")

    def multiply(self, a: Array, b: Array, c: Array) -> Array:
        """Return the bits of D (16, columns, warps), from those of A (16, inner, warps), B (inner,
        columns, warps) and C."""
        to, a_kind, right = self.types
        if a_kind == "b1":
            return tensor.multiply_bits(a, b, c.view(np.int32), both=True).view(np.uint32)
        if a_kind in ("s8", "u8"):
            return tensor.multiply_integers(
                _signed(a, a_kind), _signed(b, right), c.view(np.int32), self.saturate
            ).view(np.uint32)
        first, second = tensor.of_bits(a, a_kind), tensor.of_bits(b, right)
        first, second = first * self.signs[0], second * self.signs[1]
        third = tensor.of_bits(c, to)
        octets = f"{a_kind} {right}" if BITS[a_kind] == 8 else ""
        return tensor.multiply_of_warpgroup(first, second, third, to, octets)


def _gathered(memory: NDArray[np.uint8], places: NDArray[np.int64]) -> Array:
    if int(places.max()) >= memory.size:
        raise IndexError(int(places.max()))
    return memory[places]


def _signed(bits: Array, kind: str) -> Array:
    return bits.view(np.int8).astype(np.int64) if kind == "s8" else bits.astype(np.int64)


def _decode_wgmma(decoder: Decoder, instruction: Instruction) -> Step:
    modifiers = set(instruction.modifiers)
    if "fence" in modifiers:
        return _fence
    if modifiers & {"commit_group", "wait_group"}:
        return skip(decoder, instruction)
    product = _product(decoder, instruction)
    to, a_operand, right, scale = instruction.operands[:4]
    if len(elements(to)) != product.registers:
        raise decoder.refuse(f"expected {product.registers} registers")
    if isinstance(a_operand, Vector) and len(a_operand.elements) != 4:
        raise decoder.refuse("expected four registers of the first factor")
    return _multiply(decoder, product, (to, a_operand, right, scale))


STEPS: StepTable = {"wgmma": _decode_wgmma}


def _fence(group: Group) -> None:
    group.wave.fenced[group.warps] = True


def _product(decoder: Decoder, instruction: Instruction) -> Product:
    modifiers = instruction.modifiers
    shape = next((m for m in map(_SHAPE.fullmatch, modifiers) if m), None)
    types = tuple(m for m in modifiers if m in BITS)
    if shape is None or len(types) != 3 or not _fits(types, int(shape[1]), int(shape[2])):
        raise decoder.refuse("cutrace does not know this shape or type of wgmma")
    to, a_kind, right = types
    numbers = [_number(operand) for operand in instruction.operands[4:]]
    signs = (numbers[0], numbers[1]) if len(numbers) > 1 else (1, 1)
    from_registers = isinstance(instruction.operands[1], Vector)
    transposes = [False] * from_registers + [bool(n) for n in numbers[2:]]
    turned = (transposes[0], transposes[1]) if len(transposes) > 1 else (False, False)
    saturate = "satfinite" in modifiers
    return Product(int(shape[1]), int(shape[2]), (to, a_kind, right), saturate, signs, turned)


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
    decoder: Decoder, product: Product, operands: tuple[Operand, Operand, Operand, Operand]
) -> Step:
    to, a_operand, right, scale = operands
    starts = [decoder.fetch(e, "b32") for e in elements(to)]
    stores = [decoder.store(e, "b32") for e in elements(to)]
    firsts = (
        [decoder.fetch(e, "b32") for e in elements(a_operand)]
        if isinstance(a_operand, Vector)
        else []
    )
    first = None if firsts else decoder.fetch(a_operand, "b64")
    second = decoder.fetch(right, "b64")
    adds = None if isinstance(scale, Immediate) else decoder.fetch(scale, "pred")
    always = isinstance(scale, Immediate) and scale.bits != 0
    pc = decoder.pc

    def multiply(group: Group) -> None:
        _require_fence(decoder, group, pc)
        registers = _registers(group, starts)
        start = _accumulators(product, registers)
        if adds is not None:
            accumulates = by_warp(group, adds(group.frame))[:, 0]
            start = np.where(accumulates, start, start.dtype.type(0))
        elif not always:
            start = np.zeros_like(start)
        try:
            b = _factor(group, product, second, 1)
            a = (
                _fragments(product, _registers(group, firsts))
                if first is None
                else _factor(group, product, first, 0)
            )
        except IndexError as problem:
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: kernel `{group.wave.program.name}`: the "
                f"descriptor of a factor of `wgmma` reaches shared address {problem.args[0]:#x}, "
                f"and the block has {group.wave.shared.shape[1]} bytes",
                "outside",
            ) from None
        product_values = product.multiply(a, b.swapaxes(0, 1), start)
        for store, register in zip(stores, _spread(product, product_values), strict=True):
            put(group, store, register)

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


def _registers(group: Group, fetches: Sequence[Fetch]) -> Array:
    return np.stack([by_warp(group, fetch(group.frame)) for fetch in fetches])


def _accumulators(product: Product, registers: Array) -> Array:
    """Return C (16, columns, warps) from registers (n, warps, 32)."""
    bits = BITS[product.types[0]]
    each = registers.shape[0] * 8 // product.columns
    fragment = accumulator(ROWS, bits)
    parts = [
        fragment.read(registers[k * each : k * each + each]) for k in range(product.columns // 8)
    ]
    accumulators = np.concatenate(parts, axis=1)
    return accumulators.astype(np.uint16) if bits == 16 else accumulators


def _fragments(product: Product, registers: Array) -> Array:
    """Return A (16, inner, warps) from a warp's registers (4, warps, 32)."""
    width = 32 if product.types[1] == "b1" else BITS[product.types[1]]
    fragments = factor(ROWS, _ROW_BYTES * 8 // width, width).read(registers)
    return fragments.astype(f"u{width // 8}")


def _factor(group: Group, product: Product, fetch: Fetch, side: int) -> Array:
    """Return the rows of a factor in shared memory, (rows, elements, warps of the group)."""
    descriptors = by_warp(group, fetch(group.frame))[:, 0].view(np.uint64)
    wave = group.wave
    rows = ROWS if side == 0 else product.columns
    nothing = product.elements(np.zeros((rows, _ROW_BYTES), np.uint8), side)
    running = set(group.warps.tolist())
    columns: list[Array] = []
    cache: dict[tuple[int, int, int], Array] = {}
    for warp, bits in zip(group.place.tolist(), descriptors.tolist(), strict=True):
        block, quarter = divmod(warp, wave.warps_a_block)
        key = block, bits, 0 if side else ROWS * (quarter % WARPS)
        if warp not in running:  # only in the group's shape
            columns.append(nothing)
            continue
        if key not in cache:
            read = product.read_rows(wave.shared[block], bits, side, key[2])
            cache[key] = product.elements(read, side)
        columns.append(cache[key])
    return np.stack(columns, axis=-1)


def _spread(product: Product, d: Array) -> Array:
    """Return D (16, columns, warps) as registers (n, warps, 32)."""
    count = product.columns // 2
    number, lane = np.arange(count)[:, None], np.arange(LANES)[None]
    row = lane // 4 + number % 4 // 2 * 8
    column = number // 4 * 8 + lane % 4 * 2 + number % 2
    fragments: Any = d[row, column].swapaxes(1, 2)
    if product.types[0] != "f16":
        return np.ascontiguousarray(fragments).view(np.uint32)
    wide = fragments.astype(np.uint32)
    packed: Array = wide[0::2] | wide[1::2] << np.uint32(16)
    return packed


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


def by_rows(descriptor: Descriptor, rows: int, row_bytes: int) -> Places:
    """Return the offset of each byte of a row, (rows, row_bytes): K is the contiguous dimension."""
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)[None]
    width = _WIDTHS[descriptor.swizzle]
    across = CHUNK if descriptor.swizzle else descriptor.leading
    place = row % 8 * width * CHUNK + row // 8 * descriptor.stride
    return _moved(descriptor, place + byte // CHUNK * across + byte % CHUNK)


def by_columns(descriptor: Descriptor, rows: int, inner: int) -> Places:
    """Return the offset of the first byte of each 16-bit element, (rows, inner): the rows are the
    contiguous dimension."""
    row, k = np.arange(rows)[:, None], np.arange(inner)[None]
    width, chunk = _WIDTHS[descriptor.swizzle], row // 8
    if descriptor.swizzle:
        place = chunk % width * CHUNK + chunk // width * descriptor.leading
        place = place + k % 8 * width * CHUNK + k // 8 * descriptor.stride
    else:
        place = chunk * descriptor.stride + k % 8 * CHUNK + k // 8 * descriptor.leading
    return _moved(descriptor, place + row % 8 * 2)


def _moved(descriptor: Descriptor, places: Places) -> Places:
    places = places + descriptor.start
    return swizzled(places, _SWIZZLES[descriptor.swizzle], descriptor.base)

"""Parameters of functions by the byte: which of their bytes have slots of their own.

A caller may store 32 bits of which its callee loads 8, or bytes of a structure that are loaded as
one word. The bytes are cut at every border that an access in the kernel has; an access is of one
piece or of several.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...ptx.kernel import TYPE_BYTES, Address, CallTarget, Instruction, Kernel, Symbol
from ..array.slot import Fetch, Store
from ..kernel.function_pointer import callees
from ..lanes import DTYPES, Array

if TYPE_CHECKING:
    from ..array.decode import Decoder

Place: TypeAlias = tuple[int, str]
"""A `.param` variable: the function that has it, and its name."""

Span: TypeAlias = tuple[int, int]
"""Bytes of a parameter: offset and size."""

_WIDEST = 8


def parameter_pieces(
    kernel: Kernel, places: Mapping[Place, Place]
) -> Mapping[Place, tuple[Span, ...]]:
    """Return the pieces of every parameter; those that `places` joins have the same."""
    spans: dict[Place, set[Span]] = defaultdict(set)
    names = set(places)
    for block in kernel.blocks:
        for instruction in kernel.instructions[block.first : block.last]:
            for place, span in _touched(kernel, block.function, instruction):
                if not span[1]:
                    continue  # of a type that nobody knows, which is refused where it is decoded
                spans[places.get(place, place)].add(span)
                names.add(place)
    pieces = {place: cut(found) for place, found in spans.items()}
    return pieces | {name: pieces.get(places.get(name, name), ()) for name in names}


def _touched(
    kernel: Kernel, function: int, instruction: Instruction
) -> Iterator[tuple[Place, Span]]:
    size = TYPE_BYTES.get(instruction.type, 0)
    for operand in instruction.operands:
        match operand:
            case Address(Symbol(name, start), offset) if instruction.space == "param":
                for element in range(instruction.vector):
                    yield (function, name), (start + offset + element * size, size)
            case CallTarget():
                yield from _passed(kernel, function, operand)


def _passed(kernel: Kernel, function: int, target: CallTarget) -> Iterator[tuple[Place, Span]]:
    """Yield what a call touches: all of a parameter that it passes a register to."""
    reached = callees(kernel, function, target)
    for callee in reached:
        formal = kernel.functions[callee].function
        pairs = ((target.arguments, formal.parameters), (target.returns, formal.returns))
        for operands, variables in pairs:
            for operand, variable in zip(operands, variables, strict=False):
                if variable.space == "param" and not isinstance(operand, Symbol):
                    yield (callee, variable.name), (0, variable.size)
    if not reached and isinstance(target.callee, Symbol):
        brought = kernel.module.functions[target.callee.name]
        pairs = ((target.arguments, brought.parameters), (target.returns, brought.returns))
        for operands, variables in pairs:
            for operand, variable in zip(operands, variables, strict=False):
                if isinstance(operand, Symbol):
                    yield (function, operand.name), (0, variable.size)


def cut(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return pieces in order so that every span is a whole number of them.

    Spans that do not overlap are pieces themselves; others are of 1, 2, 4 or 8 bytes.
    """
    whole = sorted(set(spans))
    if all(start + size <= after for (start, size), (after, _) in pairwise(whole)):
        return tuple(whole)
    borders = sorted({border for start, size in whole for border in (start, start + size)})
    pieces: list[Span] = []
    for start, end in pairwise(borders):
        if any(first <= start and end <= first + size for first, size in whole):
            pieces += _powers(start, end)
    return tuple(pieces)


def _powers(start: int, end: int) -> Iterator[Span]:
    while start < end:
        size = min(1 << (end - start).bit_length() - 1, _WIDEST)
        yield start, size
        start += size


def fetch_bytes(decoder: "Decoder", place: Place, span: Span, kind: str) -> Fetch:
    """Return a function that takes bytes of a parameter out of a frame as the PTX type `kind`."""
    pieces = _pieces(decoder, place, span)
    if len(pieces) == 1:
        return decoder.slots.fetch_slot(_slot(decoder, place, span), DTYPES[kind])
    whole = np.dtype(f"u{span[1]}")
    parts = [
        (decoder.slots.fetch_slot(_slot(decoder, place, p), np.dtype(f"u{p[1]}")), _shift(p, span))
        for p in pieces
    ]

    def fetch(frame: list[Array]) -> Array:
        joined: Array = np.zeros((1, 1), dtype=whole)
        for part, shift in parts:
            joined = joined | (part(frame).astype(whole) << whole.type(shift))
        return joined.view(DTYPES[kind])

    return fetch


def store_bytes(decoder: "Decoder", place: Place, span: Span, kind: str) -> Store:
    """Return a function that puts a value of type `kind` into bytes of a parameter."""
    pieces = _pieces(decoder, place, span)
    if len(pieces) == 1:
        return decoder.store_slot(_slot(decoder, place, span), kind)
    whole = np.dtype(f"u{span[1]}")
    parts = [
        (decoder.store_slot(_slot(decoder, place, p), f"b{8 * p[1]}"), _shift(p, span), p[1])
        for p in pieces
    ]

    def store(frame: list[Array], value: Array) -> None:
        bits = value.view(whole)
        for put, shift, size in parts:
            put(frame, (bits >> whole.type(shift)).astype(f"u{size}"))

    return store


def piece_slots(decoder: "Decoder", place: Place) -> list[int]:
    """Return the slots of all pieces of a parameter."""
    return [_slot(decoder, place, piece) for piece in decoder.pieces.get(place, ())]


def _shift(piece: Span, span: Span) -> int:
    return 8 * (piece[0] - span[0])


def _pieces(decoder: "Decoder", place: Place, span: Span) -> tuple[Span, ...]:
    """Return the pieces of a span; an argument of the kernel is whole wherever it is read."""
    if decoder.argument_bytes((*place, *span)) is not None:
        return (span,)
    start, size = span
    pieces = tuple(p for p in decoder.pieces[place] if start <= p[0] < start + size)
    if len(pieces) > 1 and size > _WIDEST:
        raise decoder.refuse("128 bits of a parameter that others take in parts")
    return pieces


def _slot(decoder: "Decoder", place: Place, span: Span) -> int:
    key = (*place, *span)
    return decoder.slots.of_parameter(key, decoder.argument_bytes(key))

"""Parameters of functions by the byte: which of their bytes have slots of their own.

A caller may store 32 bits of which its callee loads 8, or bytes of a structure that are loaded as
one word. The bytes are cut at every border that an access in the kernel has; an access is of one
piece or of several.
"""

import numpy as np

from ..array.decoder import Decoder
from ..array.slot import Fetch, Store
from ..kernel.parameter_layout import WIDEST, Place, Span
from ..lanes import DTYPES, Array


def fetch_bytes(decoder: Decoder, place: Place, span: Span, kind: str) -> Fetch:
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


def store_bytes(decoder: Decoder, place: Place, span: Span, kind: str) -> Store:
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


def piece_slots(decoder: Decoder, place: Place) -> list[int]:
    """Return the slots of all pieces of a parameter."""
    return [_slot(decoder, place, piece) for piece in decoder.pieces.get(place, ())]


def _shift(piece: Span, span: Span) -> int:
    return 8 * (piece[0] - span[0])


def _pieces(decoder: Decoder, place: Place, span: Span) -> tuple[Span, ...]:
    """Return the pieces of a span; an argument of the kernel is whole wherever it is read."""
    if decoder.argument_bytes((*place, *span)) is not None:
        return (span,)
    start, size = span
    pieces = tuple(p for p in decoder.pieces[place] if start <= p[0] < start + size)
    if len(pieces) > 1 and size > WIDEST:
        raise decoder.refuse("128 bits of a parameter that others take in parts")
    return pieces


def _slot(decoder: Decoder, place: Place, span: Span) -> int:
    key = (*place, *span)
    return decoder.slots.of_parameter(key, decoder.argument_bytes(key))

"""Memory that JSON text would take when parsed, estimated before it is."""

import numpy as np

ALWAYS = 10_000
"""Values of each kind that are never too many."""

LEAST_BYTES = {b"{": 24, b"[": 12, b":": 8}
"""Bytes of text for each object, list and key, on average, that no manifest falls below: of all
that a manifest holds a pair of numbers takes the fewest for a list, a copy the fewest for an object
and for a key. Small ones are how a little text becomes a lot of memory."""

_KINDS = {b"{": "objects", b"[": "lists", b":": "keys"}
_CHUNK = 1 << 20
_QUOTE = ord('"')


def excess(text: bytes) -> str:
    """Say what there is too much of, or return an empty text."""
    most = {mark: max(ALWAYS, len(text) // least) for mark, least in LEAST_BYTES.items()}
    if all(text.count(mark) <= limit for mark, limit in most.items()):
        return ""
    for mark, count in _count_outside_texts(text).items():  # sources are full of brackets
        if count > most[mark]:
            return f"{count} {_KINDS[mark]} in {len(text)} bytes, more than any manifest has"
    return ""


def _count_outside_texts(text: bytes) -> dict[bytes, int]:
    """Count each mark where it is no part of a text in quotes."""
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    counts = dict.fromkeys(LEAST_BYTES, 0)
    is_inside = np.uint8(0)
    for start in range(0, len(plain), _CHUNK):
        piece = np.frombuffer(plain[start : start + _CHUNK], np.uint8)
        quotes = np.cumsum(piece == _QUOTE, dtype=np.uint32)
        outside = piece[(quotes & 1) == is_inside].tobytes()
        is_inside = np.uint8((int(is_inside) + int(quotes[-1])) & 1)
        for mark in counts:
            counts[mark] += outside.count(mark)
    return counts

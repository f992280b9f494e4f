"""Histories of warps by content, compiled: those that are equal share a path."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..native import compile_assembly
from .language import I32, I64, Struct
from .translate import translate

_KEEP = (1 << 62) - 1
_FACTOR = 0x2545F4914F6CDD1D


class Histories(Struct):
    """`count` histories, the entries `first` to `first + length` of `block`, `masks` and `repeat`.

    `places` holds at the hash of a history, or after it, its number + 1 (0: nothing); `path` gets
    the number of the first that each equals, counted among the `chosen`, which stand for them.
    """

    count: int
    first: I64
    length: I64
    block: I32
    masks: I64
    repeat: I64
    places: I32
    mask: int
    path: I64
    chosen: I64


def share_histories(h: Histories) -> int:
    """Fill `path` and `chosen`; return how many are chosen."""
    distinct = 0
    for number in range(h.count):
        at = hash_history(h, number) & h.mask
        while h.places[at] and not same_history(h, number, h.chosen[h.places[at] - 1]):
            at = (at + 1) & h.mask
        if h.places[at] == 0:
            h.chosen[distinct] = number
            distinct += 1
            h.places[at] = distinct
        h.path[number] = h.places[at] - 1
    return distinct


def hash_history(h: Histories, number: int) -> int:
    """Return a number that is mostly different for different histories; not below 0."""
    first = h.first[number]
    mixed = h.length[number]
    for entry in range(first, first + h.length[number]):
        mixed = ((mixed ^ h.masks[entry]) * _FACTOR) & _KEEP
        mixed = mixed ^ (mixed >> 29)
        mixed = ((mixed ^ (h.repeat[entry] << 20) ^ h.block[entry]) * _FACTOR) & _KEEP
        mixed = mixed ^ (mixed >> 31)
    return int(mixed)


def same_history(h: Histories, one: int, other: int) -> int:
    """Return 1 if two histories are the same, else 0."""
    if h.length[one] != h.length[other]:
        return 0
    apart = h.first[other] - h.first[one]
    for entry in range(h.first[one], h.first[one] + h.length[one]):
        twin = entry + apart
        if h.block[entry] != h.block[twin] or h.masks[entry] != h.masks[twin]:
            return 0
        if h.repeat[entry] != h.repeat[twin]:
            return 0
    return 1


@cache
def _share() -> Callable[[int], int]:
    find = compile_assembly(translate([share_histories]), vectors=False)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(find("share_histories"))


def find_alike(
    first: NDArray[np.int64],
    length: NDArray[np.int64],
    block: NDArray[np.int32],
    masks: NDArray[np.uint64],
    repeat: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each history its number among the distinct ones, and which stand for them."""
    count = len(first)
    h = Histories()
    h.count, h.first, h.length = count, np.ascontiguousarray(first), np.ascontiguousarray(length)
    h.block, h.repeat = np.ascontiguousarray(block), np.ascontiguousarray(repeat)
    h.masks = np.ascontiguousarray(masks).view(np.int64)
    places = 1 << (2 * count).bit_length()
    h.places, h.mask = np.zeros(places, dtype=np.int32), places - 1
    h.path, h.chosen = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    distinct = _share()(h.address)
    path: NDArray[np.int64] = h.path
    chosen: NDArray[Any] = h.chosen[:distinct]
    return path, chosen

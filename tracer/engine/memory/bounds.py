"""Bounds check of an access, and the indices of its lanes in the bytes of its state space."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.schema import Space
from ..array.program import Group
from ..lanes import LANES, Array, Mask
from . import cluster
from .address_facts import Facts


@dataclass(frozen=True, slots=True)
class Reach:
    """Elements `words[index + k]` for element k of each lane.

    `index` broadcasts to (rows, columns); what inactive lanes have in it means nothing. With
    `by_block` the words are (blocks, words a block) and `index` is the same for every block.
    `inside` is False if the bounds of the whole access do not lie in one allocation. `written` is
    the same place in the map of written bytes, where one is kept.
    """

    words: Array
    index: Array
    lanes: Mask | None
    shape: tuple[int, int]
    inside: bool
    by_block: bool = False
    space: Space = Space.GLOBAL
    written: "Reach | None" = None

    def load(self, element: int) -> Array:
        """Return element `element` of every lane."""
        loaded: Array
        if self.by_block:
            loaded = self.words.take(self.index[0] + element, axis=1, mode="clip")
        else:
            loaded = self.words[element:].take(self.index, mode="clip")
        return loaded

    def flat(self) -> tuple[Array, Array]:
        """Return the words in one dimension, and the indices of element 0 into them."""
        if not self.by_block:
            return self.words, self.index
        rows = np.arange(self.shape[0])[:, None] * self.words.shape[1]
        return self.words.reshape(-1), rows + self.index

    def store(self, element: int, value: Array) -> None:
        """Write element `element` of every active lane, in order of block, warp and lane."""
        words, index = self.flat()
        index = index + element if element else index
        value = value.view(words.dtype)
        if self.lanes is not None:
            chosen = np.broadcast_to(self.lanes, self.shape)
            index = np.broadcast_to(index, self.shape)[chosen]
            value = np.broadcast_to(value, self.shape)[chosen]
        elif index.shape != value.shape:
            index = np.broadcast_to(index, self.shape)
        words[index] = value


def reach(
    group: Group, facts: Facts, delta: int, space: Space, dtype: np.dtype[Any], count: int
) -> Reach:
    """Find what an access at `facts` plus `delta` bytes touches; bounds first, lanes not yet."""
    wave = group.wave
    match space:
        case Space.SHARED:
            memory = wave.shared
        case Space.LOCAL:
            memory = wave.local
        case _:
            memory = wave.program.memory.arena(space).bytes
    where = _find(group, facts, delta, space, dtype, count, memory)
    written = None if wave.shadow is None else wave.shadow.of(space)
    if written is None:
        return where
    twin = _find(group, facts, delta, space, dtype, count, written)
    return replace(where, written=twin)


def _find(
    group: Group, facts: Facts, delta: int, space: Space, dtype: np.dtype[Any], count: int,
    memory: NDArray[np.uint8],
) -> Reach:  # fmt: skip
    low, high = facts.low + delta, facts.high + delta + dtype.itemsize * count
    shape = (group.rows, group.columns)
    if space in (Space.GLOBAL, Space.CONST, Space.SURFACE):
        arena = group.wave.program.memory.arena(space)
        found = arena.find(low)
        inside = found is not None and high <= found.address + found.size
        start = low - arena.base
        start -= start % dtype.itemsize
        words = _words(memory, max(start, 0), max(high - arena.base, 0), dtype)
        return Reach(words, facts.index(dtype.itemsize), facts.lanes, shape, inside)
    if space == Space.SHARED and cluster.is_elsewhere(facts, delta):
        return _find_elsewhere(group, facts, delta, dtype, count, memory)
    inside = low >= 0 and high <= memory.shape[1]
    if not inside:
        return Reach(memory, facts.index(dtype.itemsize), facts.lanes, shape, inside, space=space)
    words = memory.view(dtype)
    first = low // dtype.itemsize
    if space == Space.SHARED and len(facts.addresses) == 1 and not group.compacted:
        index = facts.index(dtype.itemsize) + first
        return Reach(words, index, facts.lanes, shape, inside, by_block=True, space=space)
    index = _own_index(group, facts, space, dtype.itemsize, words.shape[1])
    return Reach(words.reshape(-1)[first:], index, facts.lanes, shape, inside, space=space)


def _find_elsewhere(
    group: Group, facts: Facts, delta: int, dtype: np.dtype[Any], count: int,
    memory: NDArray[np.uint8],
) -> Reach:  # fmt: skip
    """Find what lanes touch that reach shared memory of several blocks of their cluster."""
    words = memory.view(dtype)
    index, ended = cluster.find_elsewhere(group, facts, delta, dtype.itemsize, words.shape[1])
    addresses = np.broadcast_to(facts.addresses, ended.shape) + delta
    within = cluster.is_inside(group, addresses, dtype.itemsize * count)
    if facts.lanes is not None:
        within = within | ~facts.lanes
    inside = bool(within.all()) and not ended.any()
    shape = (group.rows, group.columns)
    return Reach(words.reshape(-1), index, facts.lanes, shape, inside, space=Space.SHARED)


def _words(memory: NDArray[np.uint8], start: int, end: int, dtype: np.dtype[Any]) -> Array:
    length = max(end - start, 0) // dtype.itemsize * dtype.itemsize
    return memory[start : start + length].view(dtype)


def _own_index(group: Group, facts: Facts, space: Space, itemsize: int, pitch: int) -> Array:
    """Return indices into the memory of all blocks or threads, relative to `facts.low`."""
    key = (space.name, itemsize)
    if not group.compacted and key in facts.indices:
        return facts.indices[key]
    if space == Space.SHARED:
        owner = group.row_block[:, None]
    else:
        owner = (group.place * LANES)[:, None] + np.arange(LANES)
        owner = owner.reshape(group.rows, group.columns)
    index = owner * pitch + facts.index(itemsize)
    if not group.compacted:
        facts.indices[key] = index
    return index

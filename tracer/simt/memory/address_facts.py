"""Address facts of register values: range, alignment, and a base and pattern per warp, cached.

Facts belong to one value (an array object) under one set of active lanes. A later value that
differs from it by a uniform number shares them, shifted. So a loop that increments a pointer, or
loads at immediate offsets from it, computes its address facts once.
"""

from collections.abc import Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack
from ..rows.pattern import PatternTable

REMEMBERED = 48
"""Maximum number of cached values; more would only cost memory."""

FACT_BYTES = 3 << 22
"""Maximum bytes of the values cached for their facts, and of those cached as offsets from
others.
"""


@dataclass(slots=True)
class AddressRange:
    """Facts of the addresses (r, c) int64 of lanes; `lanes` are the active ones (None: all).

    `low` and `high` bound the active lanes' addresses, `odd_bits` has each of the four low bits
    that is set in one of them. `base` and `pattern` are (r, warps per row), or broadcast to it;
    `keep` (same shape) is False for warps without an active lane, None if there are none.
    """

    addresses: Array
    lanes: Mask | None
    low: int
    high: int
    odd_bits: int
    base: NDArray[np.int64]
    pattern: NDArray[np.uint32]
    keep: Mask | None
    indices: dict[tuple[str, int], Array] = field(default_factory=dict)

    def index(self, itemsize: int) -> Array:
        """Return element indices (r, c) relative to `low`."""
        key = ("low", itemsize)
        if key not in self.indices:
            shift = itemsize.bit_length() - 1
            self.indices[key] = (self.addresses - self.low) >> shift
        return self.indices[key]


def as_addresses(value: Array) -> Array:
    """Return the bits of a 32- or 64-bit register as int64: 32-bit values are unsigned."""
    if value.dtype.itemsize == 8:
        return value.view(np.int64)
    return value.view(np.uint32).astype(np.int64)


def add_offset(value: Array, delta: int) -> Array:
    """Return a register's value plus `delta`, wrapped to the register's width."""
    bits = np.dtype(f"u{value.dtype.itemsize}")
    further: Array = value.view(bits) + bits.type(delta & int(np.iinfo(bits).max))
    return further


def wrap_offset(facts: AddressRange, delta: int, value: Array) -> int | None:
    """Return `delta` modulo the register's range, such that `value` plus it does not wrap.

    32-bit values are unsigned, 64-bit ones signed. None if some lanes wrap and others do not.
    """
    size = 8 * value.dtype.itemsize
    start = -(1 << 63) if size == 64 else 0
    wraps = (facts.low + delta - start) >> size
    if (facts.high + delta - start) >> size != wraps:
        return None
    return delta - (wraps << size)


def analyze_addresses(
    value: Array, lanes: Mask | None, columns: int, patterns: PatternTable
) -> AddressRange | None:
    """Return the facts of `value` (r, c) under `lanes` (r, c), or None if no lane is active."""
    addresses = as_addresses(value)
    if lanes is None:
        return _of_all(addresses, patterns)
    shape = np.broadcast_shapes(addresses.shape, lanes.shape, (1, columns))
    return _of_some(np.broadcast_to(addresses, shape), np.broadcast_to(lanes, shape), patterns)


def _of_all(addresses: Array, patterns: PatternTable) -> AddressRange:
    rows, columns = addresses.shape
    if columns == 1:
        base = addresses
        offsets = np.zeros((rows, 1, LANES), dtype=np.int64)
    else:
        warps = addresses.reshape(rows, columns // LANES, LANES)
        base = warps[:, :, 0]
        offsets = warps - base[:, :, None]
    low, high = int(addresses.min()), int(addresses.max())
    odd_bits = int(np.bitwise_or.reduce(addresses, axis=None)) & 15
    active = np.full(base.size, ALL_LANES, dtype=np.uint32)
    pattern = _interned(offsets, active, patterns)
    return AddressRange(addresses, None, low, high, odd_bits, base, pattern, None)


def _of_some(addresses: Array, lanes: Mask, patterns: PatternTable) -> AddressRange | None:
    spread = addresses.reshape(-1, LANES)
    mask = lanes.reshape(-1, LANES)
    active_values = spread[mask]
    if not active_values.size:
        return None
    first = mask.argmax(axis=1)
    base = spread[np.arange(len(spread)), first]
    offsets = np.where(mask, spread - base[:, None], 0)
    active = pack(mask)
    keep = active != 0
    grid = (addresses.shape[0], addresses.shape[1] // LANES)
    pattern = _interned(offsets.reshape(*grid, LANES), active, patterns)
    return AddressRange(
        addresses,
        lanes,
        int(active_values.min()),
        int(active_values.max()),
        int(np.bitwise_or.reduce(active_values)) & 15,
        base.reshape(grid),
        pattern,
        None if keep.all() else keep.reshape(grid),
    )


def _interned(offsets: Array, active: Bits, patterns: PatternTable) -> NDArray[np.uint32]:
    """Intern offsets (rows, warps, 32): once, if all rows and warps agree."""
    rows, warps = offsets.shape[:2]
    if bool((offsets == offsets[:1]).all()) and bool((active == active[0]).all()):
        one = patterns.intern(active[:warps], offsets[0])
        return one[None] if one.size > 1 and not (one == one[0]).all() else one[:1].reshape(1, 1)
    return patterns.intern(active, offsets.reshape(-1, LANES)).reshape(rows, warps)


class AddressCache:
    """Caches facts by value and lanes, and which values are a uniform offset from others.

    Keys are ids of arrays, so each entry holds its arrays: an id cannot be reused while it is
    cached. The cache is bounded in entries and bytes; the oldest entry is evicted first.
    """

    def __init__(self, patterns: PatternTable) -> None:
        self._patterns = patterns
        self._facts: dict[tuple[int, int], tuple[Array, Mask | None, AddressRange | None]] = {}
        self._steps: dict[int, tuple[Array, Array, int]] = {}
        self._known: set[int] = set()
        self._fact_bytes = 0
        self._step_bytes = 0
        self._epoch = patterns.epoch

    def of(
        self, value: Array, lanes: Mask | None, columns: int, offset: int = 0
    ) -> tuple[AddressRange | None, int]:
        """Return facts, and the distance in bytes of the value plus `offset` from them.

        The sum has the register's width: it wraps without carry.
        """
        if self._epoch != self._patterns.epoch:
            self.forget()
            self._epoch = self._patterns.epoch
        start, delta = value, offset
        step = self._steps.get(id(value))
        if step is not None and step[0] is value and (id(step[1]), id(lanes)) in self._facts:
            start, delta = step[1], offset + step[2]
        facts = self._facts_of(start, lanes, columns)
        if facts is None:
            return None, 0
        # One distance serves all lanes only if they wrap alike; else the sum gets separate facts.
        beyond = wrap_offset(facts, delta, value)
        if beyond is not None:
            return facts, beyond
        return self._facts_of(add_offset(value, offset), lanes, columns), 0

    def values(self) -> Iterator[Array]:
        """Yield all arrays that the cache refers to."""
        for value, _, facts in self._facts.values():
            yield from (value,) if facts is None else (value, facts.addresses)
        for result, source, _ in self._steps.values():
            yield from (result, source)

    def _facts_of(self, value: Array, lanes: Mask | None, columns: int) -> AddressRange | None:
        """Return the facts of a value, computed once."""
        key = (id(value), id(lanes))
        entry = self._facts.get(key)
        if entry is None:
            while len(self._facts) >= REMEMBERED or self._fact_bytes > FACT_BYTES:
                self._forget_fact(next(iter(self._facts)))
            entry = (value, lanes, analyze_addresses(value, lanes, columns, self._patterns))
            self._facts[key] = entry
            self._fact_bytes += _held_bytes(entry[2])
            self._known.add(id(value))
        return entry[2]

    def note_sum(self, result: Array, source: Array, addend: Array) -> None:
        """Record that `result` is `source` plus the single number in `addend`."""
        base, delta = source, int(as_addresses(addend)[0, 0])
        earlier = self._steps.get(id(source))
        # A chain of sums refers to its first value, so that a loop's pointer stays one offset away.
        if earlier is not None and earlier[0] is source and id(source) not in self._known:
            base, delta = earlier[1], earlier[2] + delta
        while len(self._steps) >= REMEMBERED or self._step_bytes > FACT_BYTES:
            self._forget_step(next(iter(self._steps)))
        self._forget_step(id(result))
        self._steps[id(result)] = (result, base, delta)
        self._step_bytes += result.nbytes

    def drop(self, value: Array) -> None:
        """Evict a value that is about to change in place."""
        place = id(value)
        if place not in self._known and place not in self._steps:
            return
        self._known.discard(place)
        for key in [k for k in self._facts if k[0] == place]:
            self._forget_fact(key)
        for step in [k for k, (_, source, _) in self._steps.items() if place in (k, id(source))]:
            self._forget_step(step)

    def forget(self) -> None:
        """Evict all values."""
        self._facts.clear()
        self._steps.clear()
        self._known.clear()
        self._fact_bytes = self._step_bytes = 0

    def _forget_fact(self, key: tuple[int, int]) -> None:
        """Evict one value under one set of lanes."""
        self._fact_bytes -= _held_bytes(self._facts.pop(key)[2])
        if not any(place == key[0] for place, _ in self._facts):
            self._known.discard(key[0])

    def _forget_step(self, place: int) -> None:
        step = self._steps.pop(place, None)
        self._step_bytes -= 0 if step is None else step[0].nbytes


def _held_bytes(facts: AddressRange | None) -> int:
    """Return the bytes that facts may hold: addresses, and indices computed from them."""
    return 0 if facts is None else 2 * facts.addresses.nbytes

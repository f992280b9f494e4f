"""Banks: the passes of an access to shared memory.

What the hardware does. Successive words are in successive banks, and a bank serves one of its rows
per pass. An instruction is split into requests of neighbouring lanes. A request with lanes that
need different rows of one bank takes several passes: a bank conflict.

- 1.x (`broadcast`): 16 banks of 4 bytes, a request per half-warp; more than 4 bytes per lane are
  several accesses. A pass serves all lanes that read any byte of one chosen word, the broadcast
  word, and one lane for each other bank.
- 2.x (`multicast`): 32 banks of 4 bytes; a pass serves all lanes that need the same word of a bank.
  8 bytes per lane are a request per half-warp. 16 bytes are a request per quarter-warp, which takes
  one pass more than its conflicts need (`wide_extra`).
- 3.x: 32 banks, each of which serves 8 bytes in a pass. In 8-byte mode (`bank_bytes`) successive
  8-byte words are in successive banks. In 4-byte mode successive 4-byte words are in successive
  banks, and a pass serves words i and i + 32 of an aligned group of 64 together.
- 5.x on: as 2.x, without the extra pass.
- 7.0 on (`pair_merge`): requests of 8 and 16 bytes per lane hold twice as many lanes if in every
  pair of active lanes n and n ^ 1 both lanes load from the same address, or in every pair n and
  n ^ 2.

Atomics on one word are serialised by lane, as if each lane needed its own word. There are two
exceptions: atomics that the assembler has combined, and additions of one that the chip does for all
lanes at once (`COLLISIONS`). Compare and swap takes two passes per lane, other atomics one. Where
the assembler makes a loop of an atomic (docs/counters.md), an iteration takes two passes per
request, whatever its addresses.

What is modelled:

- `split_requests`, the requests with an active lane, and their `passes`.
- `ideal_passes`, the passes without any conflict: one per request. With `pair_merge` they are as
  many as move the bytes of the active lanes (a byte of two lanes twice) with all banks in use, but
  no more than `passes`.
- `conflicts`, the turns beyond one per request. A turn is one pass; for compare and swap, two.
- `serialized`, 1 for an instruction with a conflict.
- The broadcast word is that of the lowest lane not yet served: the choice of the hardware is not
  documented, and matters where lanes share several words.

What is not: loops that the assembler makes of atomics up to 6.x. From 7.0 on the accesses of such
loops are rows of their own (`replay/atomic_loops.py`).

Source: CUDA C Programming Guide 4.2, F.3.3; 7.5, G.3.3, G.4.3 and G.5.3; Nsight Compute 2022.3
Profiling Guide; forums.developer.nvidia.com, topic 77228, for pairs of lanes on 7.x;
docs/validation.md for pairs of lanes and ideal passes on 9.0, and for atomics.
"""

from collections.abc import Sequence
from math import lcm
from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from .replay.interface.model import Batch, Bools, Ints, Kind, Step
from .replay.rows.lanes import NONE, check_lanes, sort_distinct, sum_parts

WORD = 4
RULES = ("broadcast", "multicast")


@dataclass(frozen=True)
class Banks:
    """The banks of one device.

    `row_bytes` is the bytes of all banks together in a pass, one row each. `request_lanes` are the
    lanes per request for up to 4, for 8, and for 16 bytes per lane.
    """

    rule: str
    banks: int
    bank_bytes: int
    row_bytes: int
    request_lanes: Sequence[int]
    wide_extra: int = 0
    pair_merge: bool = False

    counters: ClassVar[tuple[str, ...]] = (
        "split_requests",
        "passes",
        "ideal_passes",
        "conflicts",
        "serialized",
    )

    def __post_init__(self) -> None:
        """Refuse unknown rules and impossible banks."""
        if self.rule not in RULES:
            raise CutraceError(
                f"banks: no rule `{self.rule}`; there are {', '.join(RULES)}"
                + nearest(self.rule, RULES)
            )
        for name in ("banks", "bank_bytes", "row_bytes"):
            if getattr(self, name) < 1:
                raise CutraceError(f"banks: {name} = {getattr(self, name)}; expected 1 or more")
        if self.bank_bytes % WORD or self.row_bytes % (self.banks * self.bank_bytes):
            raise CutraceError(
                f"banks: {self.banks} banks of {self.bank_bytes} bytes and rows of "
                f"{self.row_bytes}; expected whole words of {WORD} bytes, and rows that all banks "
                "share alike"
            )
        if self.wide_extra < 0:
            raise CutraceError(f"banks: wide_extra = {self.wide_extra}; expected 0 or more")
        check_lanes("banks: request_lanes", self.request_lanes)

    @property
    def period(self) -> int:
        """Bytes after which banks and rows repeat."""
        return lcm(self.banks * self.bank_bytes, self.row_bytes)

    def step(self, batch: Batch) -> Step:
        """Serve each kind by its rule."""
        requests, passes = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
        cost, ideal = np.ones(len(batch), np.int64), np.zeros(len(batch), np.int64)
        for kind, rows in batch.parts():
            serve = self._broadcast if self.rule == "broadcast" else self._multicast
            requests[rows], passes[rows] = serve(kind, batch.addresses[rows], batch.active[rows])
            cost[rows] += kind.collision in ("compared", "turn")
            ideal[rows] = self._ideal(kind, batch.active[rows], requests[rows], passes[rows])
        conflicts = passes - requests
        serialized = (conflicts > 0).astype(np.int64)
        values = (requests, cost * passes, cost * ideal, conflicts, serialized)
        return Step(dict(zip(self.counters, values, strict=True)))

    def _ideal(self, kind: Kind, active: Bools, requests: Ints, passes: Ints) -> Ints:
        """Return the conflict-free passes of each row.

        Where pairs of lanes merge, the addresses of a request may save passes. Then the ideal is
        the bytes that its lanes request, one row of the banks per pass, or the actual passes if
        these are fewer.
        """
        plain = kind.access in ("load", "store") or kind.collision == "turn"
        if not self.pair_merge or not plain:
            return requests
        request_bytes = np.count_nonzero(active, axis=1) * kind.width
        fewest: Ints = np.minimum(-(-request_bytes // self.row_bytes), passes)
        return fewest

    def _broadcast(self, kind: Kind, addresses: Ints, active: Bools) -> tuple[Ints, Ints]:
        """1.x: return the requests and the passes of each row."""
        lanes = self.request_lanes[0]
        mask = active.reshape(-1, lanes)
        requests, passes = np.zeros(len(mask), np.int64), np.zeros(len(mask), np.int64)
        for offset in range(0, kind.width, WORD):
            word = (addresses.reshape(-1, lanes) + offset) // self.bank_bytes
            requests += mask.any(axis=1)
            passes += self._broadcast_passes(kind, word, mask)
        return sum_parts(requests, len(active)), sum_parts(passes, len(active))

    def _broadcast_passes(self, kind: Kind, word: Ints, active: Bools) -> Ints:
        """Serve the lanes of each request until none is left."""
        if _serves_lanes(kind):
            return self._lanes_a_bank(word, active)
        pending, passes = active.copy(), np.zeros(len(word), np.int64)
        while pending.any():
            passes += pending.any(axis=1)
            lowest = np.take_along_axis(word, pending.argmax(axis=1)[:, None], axis=1)
            shared = pending & (word == lowest)
            singles = pending & _is_first(word % self.banks, pending & ~shared)
            pending &= ~(shared | (singles & (word % self.banks != lowest % self.banks)))
        return passes

    def _multicast(self, kind: Kind, addresses: Ints, active: Bools) -> tuple[Ints, Ints]:
        """2.x and later: return the requests and the passes of each row."""
        size_class = (kind.width > 4) + (kind.width > 8)
        lanes = self.request_lanes[size_class]
        ideal, passes = self._serve(kind, addresses, active, lanes)
        if self.pair_merge and kind.access == "load" and lanes < active.shape[1]:
            merged = _pairs_agree(addresses, active)
            fewer = self._serve(kind, addresses, active, 2 * lanes)
            ideal, passes = np.where(merged, fewer[0], ideal), np.where(merged, fewer[1], passes)
        return ideal, passes

    def _serve(self, kind: Kind, addresses: Ints, active: Bools, lanes: int) -> tuple[Ints, Ints]:
        """Split rows into requests of `lanes`; return the requests and passes of each row."""
        groups, mask = addresses.reshape(-1, lanes), active.reshape(-1, lanes)
        words = range(0, kind.width, WORD)
        word_addresses = np.concatenate([groups + offset for offset in words], axis=1)
        every = np.tile(mask, len(words))
        asking = np.asarray(mask.any(axis=1), np.int64)
        if kind.collision == "turn":
            passes = asking.copy()
        elif _serves_lanes(kind):
            passes = self._lanes_a_bank(groups // self.bank_bytes, mask)
        else:
            passes = self._rows_a_bank(word_addresses, every)
        passes += asking * (self.wide_extra if kind.width > 8 else 0)
        return sum_parts(asking, len(active)), sum_parts(passes, len(active))

    def _rows_a_bank(self, addresses: Ints, active: Bools) -> Ints:
        """Return per request the most distinct rows of any one bank."""
        bank = addresses // self.bank_bytes % self.banks
        place = sort_distinct(addresses // self.row_bytes * self.banks + bank, active)
        return self._most(place % self.banks, place != NONE)

    def _lanes_a_bank(self, words: Ints, active: Bools) -> Ints:
        """Return per request the most lanes on any one bank."""
        return self._most(words % self.banks, active)

    def _most(self, bank: Ints, counted: Bools) -> Ints:
        """Return per row the count of its most frequent bank."""
        number = np.arange(len(bank))[:, None] * self.banks + bank
        times = np.bincount(number[counted], minlength=len(bank) * self.banks)
        return np.asarray(times.reshape(-1, self.banks).max(axis=1), np.int64)


def _serves_lanes(kind: Kind) -> bool:
    """Return whether lanes on one address are serialised."""
    return kind.access in ("atomic", "reduction") and kind.collision not in ("elected", "counted")


def _is_first(values: Ints, mask: Bools) -> Bools:
    """Return whether a lane is the first selected one with its value, (n, lanes)."""
    first = np.zeros_like(mask)
    for lane in range(values.shape[1]):
        before = (values[:, :lane] == values[:, lane, None]) & mask[:, :lane]
        first[:, lane] = mask[:, lane] & ~before.any(axis=1)
    return first


def _pairs_agree(addresses: Ints, active: Bools) -> Bools:
    """Return whether all active pairs of lanes n and n ^ 1, or all n and n ^ 2, agree, (n,)."""
    lane = np.arange(active.shape[1])
    agree = [
        ((addresses == addresses[:, lane ^ step]) | ~active | ~active[:, lane ^ step]).all(axis=1)
        for step in (1, 2)
    ]
    return np.asarray(agree[0] | agree[1], np.bool_)

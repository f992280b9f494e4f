"""Atomic loops: the loops that ptxas makes of some atomics, with a row for each of their accesses.

Hardware: it has no adds of float, double or pairs of halves and no 64-bit atomics in shared memory,
and no adds of one half anywhere. ptxas makes loops of them, `spun` and `swapped`
(`traces.schema.COLLISIONS`). The first loads and stores in every iteration; the second loads once,
then compares and swaps a word of 4 bytes in every iteration.

Model: `LaunchTrace`s. Their rows are the loads and atomics of a warp alone, iteration by iteration;
readers treat them as recorded ones. The loads belong to instructions behind the kernel's last one,
which no warp's path names; `fold` adds their counts to the atomics.

Limits: no contention by other warps; no branches and arithmetic of the loop; no cost of a generic
address (a wavefront of shared memory per loop).

Source: the code of ptxas 12.9 for 7.0 to 12.0; `tests/validate/test_retries.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.column import integers, with_columns
from ...traces.identity_cache import cached_by_identity
from ...traces.pattern_store import Patterns, Unpacked
from ...traces.reader import LaunchTrace
from ...traces.schema import Space
from ...traces.unique import sorted_unique
from .interface.model import Bools, Ints
from .launch_view import LaunchView
from .rows.lanes import unpack_masks

SINCE = 7, 0
"""The first capability whose loops are known."""
SPUN, SPUN_WIDE, SWAPPED = 1, 2, 3
_COLLISION_KINDS = {"spun": "turn", "swapped": "compared"}
"""Collisions that are loops, and those of the atomics in them."""
_WORD, _ROWS_PER_READ = 4, 1 << 12
_KEYS = ("pc", "array", "scope")


@dataclass(frozen=True, slots=True, eq=False)
class _Code:
    """A kernel with its loops. `instructions` has the loads of loops behind the others. Per pc,
    (pcs,): its loop, 0 for none, and its load. `owner` (pcs and loads,) is the pc to which
    counts belong.
    """

    instructions: pa.Table
    loop: Ints
    load: Ints
    owner: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Retries:
    """Patterns of iterations. Per key of `keys` (k,), rising: the number of `rounds` and the index
    of the `first`. Per new pattern: its `origin`, the lanes `active` (m,), and by how much it is
    `moved` down to words, -1 where it is not.
    """

    keys: Ints
    rounds: Ints
    first: Ints
    origin: Ints
    active: npt.NDArray[np.uint32]
    moved: npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class _Store:
    """The patterns of a launch, and behind them those of iterations."""

    before: Patterns
    retries: _Retries

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.before) + len(self.retries.origin)

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return active masks and offsets of identifiers (n,)."""
        number = identifiers - len(self.before)
        new = np.flatnonzero(number >= 0)
        if not len(new):
            return self.before.take(identifiers)
        source = identifiers.copy()
        source[new] = self.retries.origin[number[new]]
        masks, recorded = self.before.take(source)
        active, offsets = masks.copy(), recorded.copy()
        active[new], moved = self.retries.active[number[new]], self.retries.moved[number[new], None]
        words = (offsets[new] + moved) // _WORD * _WORD
        lanes = unpack_masks(active[new])
        offsets[new] = np.where(lanes, np.where(moved < 0, offsets[new], words), 0)
        return active, offsets


@dataclass(frozen=True)
class UnrolledLaunch(LaunchView):
    """A launch, `before`, with the accesses of its loops."""

    code: _Code = field(kw_only=True, repr=False)

    def instructions(self) -> pa.Table:
        """Return all instructions, then the loads of loops."""
        return self.code.instructions

    def pattern_store(self) -> Patterns:
        """Return the patterns of `before`, then those of iterations."""
        return _Store(self.before.pattern_store(), self._retries)

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses, with one row per access of a loop."""
        names = tuple(dict.fromkeys((*columns, *_COLUMNS))) if columns else ()
        for batch in self.before.access_batches(names):
            yield self._unroll(batch)

    def _unroll(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        at, loop, key = self._loops(batch)
        if not len(at):
            return batch
        place = np.searchsorted(self._retries.keys, key)
        many = np.ones(batch.num_rows, np.int64)
        many[at] = (
            np.where(loop == SWAPPED, 1, self._retries.rounds[place]) + self._retries.rounds[place]
        )
        row = np.repeat(np.arange(len(many)), many)
        piece = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        which = np.full(len(many), -1)
        which[at] = np.arange(len(at))
        mine = np.flatnonzero(which[row] >= 0)
        each, piece = which[row[mine]], piece[mine]
        swapped = loop[each] == SWAPPED
        iteration = np.where(swapped, np.maximum(piece - 1, 0), piece // 2)
        loads = np.where(swapped, piece == 0, piece % 2 == 0)
        expansion = batch.take(pa.array(row))
        pc, base, pattern = (c.copy() for c in integers(expansion, "pc", "base", "pattern"))
        pc[mine] = np.where(loads, self.code.load[pc[mine]], pc[mine])
        base[mine] -= np.where(swapped, base[mine] % _WORD, 0)
        pattern[mine] = self._recorded + self._retries.first[place[each]] + iteration
        return with_columns(expansion, pc=pc, base=base, pattern=pattern)

    def _loops(self, batch: pa.RecordBatch) -> tuple[Ints, Ints, Ints]:
        """Return the rows of a batch that are loops, their loops, and the keys of the turns."""
        pc, space, base, pattern = integers(batch, *_COLUMNS)
        loop = self.code.loop[pc]
        loop = np.where((loop != SWAPPED) & (space != Space.SHARED), 0, loop)
        at = np.flatnonzero(loop)
        moved = np.where(loop[at] == SWAPPED, base[at] % _WORD, 0)
        return at, loop[at], (loop[at] * _WORD + moved) * self._recorded + pattern[at]

    @cached_property
    def _recorded(self) -> int:
        """The recorded patterns."""
        return len(self.before.pattern_store())

    @cached_property
    def _retries(self) -> _Retries:
        """Read all accesses once, and compute the iterations of each pattern of a loop."""
        batches = self.before.access_batches(_COLUMNS)
        key_parts = [sorted_unique(self._loops(batch)[2]) for batch in batches]
        keys = sorted_unique(np.concatenate([np.zeros(0, np.int64), *key_parts]))
        how, pattern = np.divmod(keys, max(self._recorded, 1))
        loop, moved = np.divmod(how, _WORD)
        store = self.before.pattern_store()
        trip_counts, lane_masks = np.zeros(len(keys), np.int64), [np.zeros(0, np.uint32)]
        for start in range(0, len(keys), _ROWS_PER_READ):
            some = slice(start, start + _ROWS_PER_READ)
            masks, offsets = store.take(pattern[some])
            addresses = np.asarray(moved[some, None] + offsets, np.int64)
            iteration = _turns_of(loop[some], addresses, unpack_masks(masks))
            trip_counts[some] = iteration.max(axis=1) + 1
            lane_masks.append(_active_lanes(iteration))
        words = np.where(loop == SWAPPED, moved, -1).astype(np.int8)
        return _Retries(
            keys,
            trip_counts,
            np.cumsum(trip_counts) - trip_counts,
            np.repeat(pattern, trip_counts),
            np.concatenate(lane_masks),
            np.repeat(words, trip_counts),
        )


_COLUMNS = ("pc", "space", "base", "pattern")


def unrolled(trace: LaunchTrace) -> LaunchTrace:
    """Return a launch with the loops of its atomics."""
    code = _unroll_code(trace.instructions())
    if code is None:
        return trace
    return UnrolledLaunch.of(trace, code=code)


def fold(counts: pl.DataFrame, trace: LaunchTrace) -> pl.DataFrame:
    """Add the counts of loop loads to the atomics that own them."""
    if not isinstance(trace, UnrolledLaunch) or not counts.height:
        return counts
    owner = pl.Series(trace.code.owner[counts["pc"].to_numpy()], dtype=pl.UInt32)
    numbers = [name for name in counts.columns if name not in _KEYS]
    groups = counts.with_columns(pc=owner).group_by(_KEYS, maintain_order=True)
    return groups.agg(pl.col(numbers).sum()).select(counts.columns).sort(_KEYS)


@cached_by_identity
def _unroll_code(table: pa.Table) -> _Code | None:
    """Return a kernel with its loops; None if it has none."""
    rows = table.select(["collision", "access", "bytes"]).to_pylist()
    loop = np.array([_loop(row["collision"], row["bytes"]) for row in rows], np.int64)
    places = np.flatnonzero(loop)
    if not len(places):
        return None
    row_count, words = len(rows), loop == SWAPPED
    atomics = with_columns(
        table,
        collision=[_COLLISION_KINDS.get(row["collision"], row["collision"]) for row in rows],
        access=np.where(words, "atomic", [row["access"] for row in rows]),
        bytes=np.where(words, _WORD, table["bytes"].to_numpy()),
    )
    loop_atomics = atomics.take(pa.array(places))
    reach = loop_atomics["reads"].to_numpy() | loop_atomics["writes"].to_numpy()
    loads = with_columns(
        loop_atomics,
        pc=row_count + np.arange(len(places)),
        block=np.full(len(places), table["block"].to_numpy().max() + 1),
        access=["load"] * len(places),
        collision=[""] * len(places),
        reads=reach,
        writes=np.zeros_like(reach),
        order=["weak"] * len(places),
        scope=[""] * len(places),
    )
    load = np.zeros(row_count, np.int64)
    load[places] = row_count + np.arange(len(places))
    owner = np.concatenate([np.arange(row_count), places])
    return _Code(pa.concat_tables([atomics, loads]), loop, load, owner)


def _loop(collision: str, width: int) -> int:
    if collision == "spun":
        return SPUN if width <= _WORD else SPUN_WIDE
    return SWAPPED if collision == "swapped" else 0


def _turns_of(loop: Ints, addresses: Ints, active: npt.NDArray[np.bool_]) -> Ints:
    """Return the number of the iteration that succeeds, per lane, (n, 32)."""
    iteration = np.empty(addresses.shape, np.int64)
    for each in sorted_unique(loop).tolist():
        rows = np.flatnonzero(loop == each)
        lanes = addresses[rows], active[rows]
        wide = 2 * _WORD if each == SPUN_WIDE else _WORD
        iteration[rows] = swapped_turns(*lanes) if each == SWAPPED else spun_turns(*lanes, wide)
    return iteration


def _active_lanes(iteration: Ints) -> npt.NDArray[np.uint32]:
    """Return the masks of the remaining lanes per iteration, row by row."""
    trip_counts = iteration.max(axis=1) + 1
    row = np.repeat(np.arange(len(trip_counts)), trip_counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(trip_counts) - trip_counts, trip_counts)
    lanes = iteration[row] >= number[:, None]
    return np.packbits(lanes, axis=1, bitorder="little").view("<u4").reshape(-1)


BANKS, WORD, WIDE, HALF = 32, 4, 8, 16


def spun_turns(addresses: Ints, active: Bools, width: int) -> Ints:
    """Return the number of the iteration that stores, per lane, (n, 32), -1 for inactive lanes.

    `addresses` (n, 32) must be exact modulo the bytes of all banks; `width` is in bytes per lane.
    """
    if width <= WORD:
        return _queue(addresses // WORD % BANKS, active)
    bank = addresses // WIDE % (BANKS * WORD // WIDE)
    first = _queue(bank[:, :HALF], active[:, :HALF])
    second = np.full_like(first, -1)
    for lane in range(HALF):
        mine, word = bank[:, HALF + lane, None], addresses[:, HALF + lane, None]
        before = bank[:, HALF : HALF + lane] == mine
        iteration = np.max(second[:, :lane], axis=1, initial=-1, where=before) + 1
        changed = np.where(addresses[:, :HALF] == word, first, -1)
        while (late := (changed == iteration[:, None]).any(axis=1)).any():
            iteration += late
        second[:, lane] = np.where(active[:, HALF + lane], iteration, -1)
    return np.concatenate([first, second], axis=1)


def swapped_turns(addresses: Ints, active: Bools) -> Ints:
    """Return the number of the iteration that swaps, per lane, (n, 32), -1 for inactive lanes."""
    return _queue(addresses // WORD, active)


def _queue(place: Ints, active: Bools) -> Ints:
    """Return the number of lower lanes with the same place, (n, lanes), -1 for inactive ones."""
    rank = np.full(place.shape, -1, np.int64)
    for lane in range(place.shape[1]):
        same = (place[:, :lane] == place[:, lane, None]) & active[:, :lane]
        rank[:, lane] = np.where(active[:, lane], same.sum(axis=1), -1)
    return rank

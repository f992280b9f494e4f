"""Relocation: a launch's trace with its arrays at other addresses or with longer rows.

Every reader of traces can read it. Rows keep everything but base and pattern: the pattern of an
access inside one array depends on its position in the array's row, and is made once for each
position; the few accesses that reach over several arrays are made row by row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....errors import CutraceError
from ....lazy_dataclass import dataclass
from ....traces.reader import LaunchTrace
from ....traces.table.column import integers, with_columns
from ....traces.table.pattern_store import HeldPatterns
from ....traces.table.unique import sorted_unique
from ..rows.arrays import SPACE_SHIFT
from ..rows.lanes import unpack_masks
from ..rows.patterns import Patterns, read_patterns
from ..seam import Bools, Ints
from .layout import Layout

FAR = 1 << 31
"""Offsets of a pattern are less than this."""
_ADDRESS = (1 << SPACE_SHIFT) - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Rows of a batch: `place` (n,) of the base, `pattern` (n,), `segment` (n,), and which rows
    get another pattern: those in one padded segment, or those over several.
    """

    place: Ints
    pattern: Ints
    segment: Ints
    padded: Bools
    over: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """Patterns that were made: `keys` (k,) of accesses in padded arrays, rising; `active` and
    `offsets` of those, then of the accesses over several segments in the order of the trace.
    """

    keys: Ints
    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]


@dataclass(frozen=True)
class MovedLaunch(LaunchTrace):
    """A launch, `before`, read as `layout` says; `launch` has the arrays where they would lie."""

    before: LaunchTrace = field(kw_only=True, repr=False)
    layout: Layout = field(kw_only=True, repr=False)

    def patterns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Return the recorded patterns, then those that were made."""
        old, made = self._recorded, self._made
        return np.concatenate([old.active, made.active]), np.concatenate(
            [old.offsets, made.offsets]
        )

    def pattern_store(self) -> HeldPatterns:
        """Return the same, to be asked for some at a time."""
        return HeldPatterns(*self.patterns())

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses with the base and pattern that they would have, all columns."""
        taken = len(self._recorded.active) + len(self._made.keys)
        for batch in self.before.access_batches():
            at = self._locate(batch)
            pattern = at.pattern.copy()
            keys = np.searchsorted(self._made.keys, self._keys(at))
            pattern[at.padded] = len(self._recorded.active) + keys
            over = int(at.over.sum())
            pattern[at.over] = np.arange(taken, taken + over)
            taken += over
            base = self.layout.move(at.place) & _ADDRESS
            yield with_columns(batch, base=base.view(np.uint64), pattern=pattern.astype(np.uint32))

    @cached_property
    def _recorded(self) -> Patterns:
        return read_patterns(*self.before.patterns())

    @cached_property
    def _made(self) -> _Made:
        """Read all accesses once, and make the patterns that they need."""
        keys: list[Ints] = [np.zeros(0, np.int64)]
        over: list[tuple[Ints, Ints]] = []
        for batch in self.before.access_batches():
            at = self._locate(batch)
            keys.append(sorted_unique(self._keys(at)))
            over.append((at.place[at.over], at.pattern[at.over]))
        distinct = sorted_unique(np.concatenate(keys))
        place, pattern = self._examples(distinct)
        places = np.concatenate([place, *(p for p, _ in over)])
        patterns = np.concatenate([pattern, *(p for _, p in over)])
        return _Made(distinct, self._recorded.active[patterns], self._offsets(places, patterns))

    def _locate(self, batch: pa.RecordBatch) -> _Places:
        space, base, pattern = integers(batch, "space", "base", "pattern")
        place, known = (space << SPACE_SHIFT) + base, self._recorded
        segment = self.layout.find(place)
        low, high = (
            self.layout.find(place + end[pattern]) for end in (known.lowest, known.highest)
        )
        over = (low != segment) | (high != segment)
        return _Places(place, pattern, segment, ~over & (self.layout.pad[segment] != 0), over)

    def _keys(self, at: _Places) -> Ints:
        """Number the padded rows by segment, pattern, and the base's place in its array's row."""
        place, segment = at.place[at.padded], at.segment[at.padded]
        phase = (place - self.layout.first[segment]) % self.layout.row[segment]
        longest = int(self.layout.row.max())
        return (segment * len(self._recorded.active) + at.pattern[at.padded]) * longest + phase

    def _examples(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return a base and the pattern of each key: the first with all its lanes in the array.

        Lanes may lie below the base, which is the lowest active lane's address.
        """
        rest, phase = np.divmod(keys, int(self.layout.row.max()))
        segment, pattern = np.divmod(rest, max(1, len(self._recorded.active)))
        row, below = self.layout.row[segment], -self._recorded.lowest[pattern] - phase
        rows = np.maximum(-(-below // row), 0)
        return self.layout.first[segment] + phase + rows * row, pattern

    def _offsets(self, places: Ints, patterns: Ints) -> npt.NDArray[np.int32]:
        """Return where the lanes of these rows go, from their bases, (n, 32) int32."""
        lanes = places[:, None] + self._recorded.offsets[patterns]
        moved = self.layout.move(lanes.ravel()).reshape(lanes.shape)
        offsets = moved - self.layout.move(places)[:, None]
        offsets[~unpack_masks(self._recorded.active[patterns])] = 0
        if len(offsets) and np.abs(offsets).max() >= FAR:
            raise CutraceError(f"launch {self.number}: padded so, lanes would lie 2 GiB apart")
        return offsets.astype(np.int32)

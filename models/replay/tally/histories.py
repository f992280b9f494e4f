"""Counting control flow: the paths of a trace, attributed to the scopes of every device."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ....traces.schema import Launch
from ....traces.table.column import integers
from ...analyses.control import count_control, count_launched, no_runs, sum_paths
from ..rows.numbering import number_rows
from ..seam import Ints
from .accesses import Track
from .tally import count_scopes

if TYPE_CHECKING:
    from ....traces.table.dictionary import Part

ENTRIES = 1 << 15
"""Entries of paths that are added up at a time, but always a path."""


class Paths(Protocol):
    """The paths of a launch, by identifier."""

    def parts(self, identifiers: Ints) -> Iterator["Part"]:
        """Yield those with identifiers (n,), which exist."""


class HistoryCounter:
    """Counts what the warps of a launch ran, for all devices, batch by batch."""

    def __init__(self, launch: Launch, instructions: pa.Table, tracks: Sequence[Track]) -> None:
        self._launch = launch
        self._instructions = instructions
        self._tracks = tracks
        self._blocks = 1 + int(instructions["block"].to_numpy().max(initial=0))
        self._runs = [[no_runs(self._blocks) for _ in t.placement.names] for t in tracks]

    def take(self, batch: pa.RecordBatch, paths: Paths) -> None:
        """Count rows of CONTROL, whose paths are among `paths`."""
        if not batch.num_rows:
            return
        block, path = integers(batch, "block", "path")
        first = int(path.min())
        distinct, number = number_rows(path - first, int(path.max()) - first + 1)
        times = [count_scopes(number, len(distinct), block, t.placement) for t in self._tracks]
        for part in paths.parts(distinct + first):
            for rows, which in _cut(part):
                every = [scope for time in times for scope in time[which].T]
                found = iter(sum_paths(rows, every, self._blocks))
                for scopes in self._runs:
                    scopes[:] = [before + next(found) for before in scopes]

    def close(self) -> None:
        """Enter what was counted in every device's ledger, and what the launch brings with it."""
        for track, scopes in zip(self._tracks, self._runs, strict=True):
            for scope, launched in enumerate(track.placement.count_scopes()):
                if launched:
                    counts = count_control(self._instructions, scopes[scope])
                    track.ledger.add_by_pc(scope, counts)
                    track.ledger.add_by_pc(scope, count_launched(self._launch, launched))


def _cut(part: "Part") -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield some paths at a time: ENTRIES at most, or one path; and which of those asked for."""
    batch, place, which = part
    lengths = np.diff(batch["blocks"].offsets.to_numpy())[place]
    group = np.cumsum(lengths) // ENTRIES
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(place)], strict=True):
        yield _rows(batch, place[start:end]), which[start:end]


def _rows(batch: pa.RecordBatch, place: Ints) -> pa.RecordBatch:
    """Return some rows; where they lie side by side, as mostly, without copying them."""
    first, size = int(place[0]), len(place)
    if (place == np.arange(first, first + size)).all():
        return batch.slice(first, size)
    return batch.take(pa.array(place))

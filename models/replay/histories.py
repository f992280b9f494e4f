"""Counting control flow: the paths of a trace, attributed to the scopes of every device."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..control import Runs, count_control, count_launched, no_runs, sum_paths
from .accesses import Track
from .seam import Ints
from .tally import count_scopes, number_rows

if TYPE_CHECKING:
    from ...traces.dictionary import Dictionary, Part
    from ...traces.reader import LaunchTrace

ENTRIES = 1 << 17
"""Entries of paths that are added up at a time, but always a path."""


def count_histories(trace: "LaunchTrace", tracks: Sequence[Track], instructions: pa.Table) -> None:
    """Read what every warp ran once, and enter every device's counts."""
    paths = trace.path_store()
    blocks = 1 + int(instructions["block"].to_numpy().max(initial=0))
    runs = [[no_runs(blocks) for _ in track.placement.names] for track in tracks]
    for batch in trace.control_batches():
        if batch.num_rows:
            _add_batch(batch, paths, tracks, runs, blocks)
    for track, scopes in zip(tracks, runs, strict=True):
        for scope, launched in enumerate(track.placement.count_scopes()):
            if launched:
                track.ledger.add_by_pc(scope, count_control(instructions, scopes[scope]))
                track.ledger.add_by_pc(scope, count_launched(trace.launch, launched))


def _add_batch(
    batch: pa.RecordBatch,
    paths: "Dictionary",
    tracks: Sequence[Track],
    runs: list[list[Runs]],
    blocks: int,
) -> None:
    """Add what the rows of a batch of CONTROL ran to the runs of each device and scope."""
    block, path = (batch[name].to_numpy().astype(np.int64) for name in ("block", "path"))
    first = int(path.min())
    distinct, number = number_rows(path - first, int(path.max()) - first + 1)
    times = [count_scopes(number, len(distinct), block, track.placement) for track in tracks]
    for part in paths.parts(distinct + first):
        for rows, which in _cut(part):
            every = [scope for time in times for scope in time[which].T]
            found = iter(sum_paths(rows, every, blocks))
            for scopes in runs:
                scopes[:] = [before + next(found) for before in scopes]


def _cut(part: "Part") -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield some paths at a time: ENTRIES at most, or one path; and which of those asked for."""
    batch, place, which = part
    lengths = np.diff(batch["blocks"].offsets.to_numpy())[place]
    group = np.cumsum(lengths) // ENTRIES
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(place)], strict=True):
        yield batch.take(pa.array(place[start:end])), which[start:end]

"""Replay without a trace: the rows of launches go to the models as the engine makes them.

Nothing is written. What keeps state (caches) needs the rows of all blocks that run at once in an
order that is known only later, and is not counted. Patterns that the engine may name again are
kept: the last ones in memory, older ones, of irregular kernels, in a temporary file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...traces.folder.manifest_builder import Draft
from ...traces.outside import OutsideTotals
from ...traces.schema import ACCESSES, CONTROL, LANES_ON, PATHS, TEXELS, Launch
from ...traces.table.column import to_batch, to_list_batch
from ...traces.table.dictionary import Part
from ...traces.table.spill import PatternSpill
from .count.counts import LaunchCounts
from .device.device import Device
from .options import ReplayOptions
from .replay import LaunchReplay
from .rows.patterns import Shapes
from .seam import Ints

Columns = npt.NDArray[Any]


class LiveLaunch:
    """Takes the rows of launch `number`, as `traces.launch_writer.LaunchWriter` does."""

    def __init__(
        self, number: int, launch: Launch, devices: Sequence[Device], options: ReplayOptions
    ) -> None:
        self.number = number
        self.table = pa.table({})
        self._launch = launch
        self._devices = devices
        self._options = options
        self._patterns = PatternSpill()
        self._paths = _LastPaths()
        self.outside_totals = OutsideTotals()

    def instructions(self, table: pa.Table) -> None:
        """Take the instructions of the kernel; before all other rows."""
        self.table = table
        self._replay = LaunchReplay(
            self._launch, table, self._devices, self._options, Shapes(self._patterns)
        )

    def patterns(self, active: Columns, offsets: Columns) -> int:
        """Take address patterns; return the identifier of the first."""
        return self._patterns.add(active, offsets)

    def accesses(self, *columns: Columns) -> None:
        """Count accesses."""
        self._replay.accesses.take(to_batch(ACCESSES, columns, "accesses"))

    def paths(self, lengths: Columns, *columns: Columns) -> int:
        """Take paths, to be named until others come; return the identifier of the first."""
        return self._paths.add(to_list_batch(PATHS, lengths, columns, "paths"))

    def control(self, *columns: Columns) -> None:
        """Count what warps ran."""
        self._replay.histories.take(to_batch(CONTROL, columns, "control"), self._paths)

    def texels(self, *columns: Any) -> None:
        """Count texture samples."""
        self._replay.samples.take(to_batch(TEXELS, columns, "texels"))

    def lanes_on(self, *columns: Columns) -> None:
        """Count lanes whose predicate held."""
        self._replay.lanes_on.take(to_batch(LANES_ON, columns, "lanes_on"))

    def outside(self, *columns: Columns) -> None:
        """Take what lanes did outside of allocations."""
        self.outside_totals.add(*columns)

    def results(self, launch: Launch) -> list[LaunchCounts]:
        """Return what was counted, by device; `launch` knows its resources by now."""
        return self._replay.results(launch, self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._replay.close()


class _LastPaths:
    """The paths that came last, by identifier."""

    def __init__(self) -> None:
        self._batch = pa.RecordBatch.from_pylist([], PATHS)
        self._first = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Take paths in place of those before; return the identifier of the first."""
        self._first += self._batch.num_rows
        self._batch = batch
        return self._first

    def parts(self, identifiers: Ints) -> Iterator[Part]:
        """Yield those with identifiers (n,)."""
        if len(identifiers) and identifiers.min() < self._first:
            raise AssertionError(f"path {identifiers.min()} is named after others have come")
        yield Part(self._batch, identifiers - self._first, np.arange(len(identifiers)))


class LiveTrace(Draft):
    """Takes what a session records, as `traces.writer.TraceWriter` does, and counts it at once."""

    def __init__(self, devices: Sequence[Device], options: ReplayOptions) -> None:
        super().__init__()
        self.launches: list[LiveLaunch] = []
        self._devices = devices
        self._options = replace(options, caches=False)

    def launch(self, launch: Launch) -> LiveLaunch:
        """Begin the next launch."""
        number = self._begin(launch)
        self.launches.append(LiveLaunch(number, launch, self._devices, self._options))
        return self.launches[-1]

    def withdraw(self) -> None:
        """Forget the launch that was begun last."""
        super().withdraw()
        self.launches.pop()

    def results(self) -> Iterator[tuple[LiveLaunch, list[LaunchCounts]]]:
        """Yield each launch with what was counted, by device."""
        for live, launch in zip(self.launches, self._launches, strict=True):
            yield live, live.results(launch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

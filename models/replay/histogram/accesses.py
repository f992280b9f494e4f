"""Counting memory accesses: the rows of a trace, through the stages of every device.

Distinct rows are found and counted (`histogram.py`), models are called once per distinct row, and
their counters are added to each device's ledger. Stages that keep state, and stages behind them,
are run by `stateful/ordered.py`. Texture samples and the paths of warps are counted here too.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import lcm
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ....base.dataclass import dataclass
from ....traces.column import integers
from ....traces.schema import Launch, Space
from ...analyses.control import count_control, count_launched, no_runs, sum_paths
from ...analyses.occupancy import Occupancy
from ..device.device import Device
from ..device.wiring import Wire
from ..interface.model import Ints, Kind
from ..rows.patterns import Shapes
from ..rows.sites import SPACE_SHIFT, Sites, Zones, number_rows
from ..rows.texels import SampleReader, Samples, window
from ..schedule.place import Placement
from ..schedule.schedule import Schedule
from .counts import Groups, Ledger, group_rows
from .histogram import SLICE, AccessHistogram, Bins, count_scopes, join
from .stages import Answers, Stages

if TYPE_CHECKING:
    from ....traces.pattern_store import Part


MOST_PENDING = 1 << 15
"""Distinct rows that are buffered before the models are called."""
ROWS_PER_QUERY = 1 << 12
"""Rows per call of a model: 2 MiB of addresses."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceReplay:
    """One device's part of a replay.

    `kinds` are those of the sites, as the device's own compiler would have made them. `repeating`
    are the stateless stages, which see distinct rows; `lasting` are the others, which see all rows
    in the issue order `order`; `front` are the stages of `repeating` that feed these. `local_bytes`
    is the local memory per thread.
    """

    device: Device
    occupancy: Occupancy
    kinds: tuple[Kind, ...]
    placement: Placement
    ledger: Ledger
    repeating: tuple[Wire, ...]
    lasting: tuple[Wire, ...]
    front: tuple[Wire, ...]
    order: Schedule
    local_bytes: int


class AccessCounter:
    """Counts the accesses of a launch for all devices, batch by batch."""

    def __init__(
        self, tracks: Sequence[DeviceReplay], sites: Sites, zones: Zones, shapes: Shapes
    ) -> None:
        self._tracks = tracks
        self._sites = sites
        self._zones = zones
        self._shapes = shapes
        self._period = lcm(*(wire.period for track in tracks for wire in track.repeating))
        self._held: list[Bins] = []
        self._many = 0
        placements = [track.placement for track in tracks]
        self._tally = AccessHistogram(sites, shapes, zones, self._period, placements)

    def take(self, batch: pa.RecordBatch) -> None:
        """Count rows of ACCESSES."""
        for start in range(0, batch.num_rows, SLICE):
            distinct_rows = self._tally.count(batch.slice(start, SLICE))
            self._held.append(distinct_rows)
            self._many += len(distinct_rows)
            if self._many > MOST_PENDING:
                self.close()

    def close(self) -> None:
        """Call the models on the buffered rows, and add their counts to every device's ledger."""
        if not self._held:
            return
        distinct_rows = join(self._held)
        self._held.clear()
        self._many = 0
        kinds, many, period = self._sites.kind[distinct_rows.site], len(self._shapes), self._period
        key = (kinds * many + distinct_rows.pattern) * period + distinct_rows.phase
        keys, number = number_rows(key, len(self._sites.kinds) * many * period)
        quotient, phase = np.divmod(keys, period)
        kind, pattern = np.divmod(quotient, many)
        base = phase + period * (-(-(1 << 32) // period))  # offsets reach 2 GiB below it
        groups = group_places(distinct_rows.site, distinct_rows.zone, distinct_rows.mixed)
        answers: dict[str, Answers] = {}
        for track, times in zip(self._tracks, distinct_rows.times, strict=True):
            stages = repr((track.kinds, [wire.stage for wire in track.repeating]))
            if stages not in answers:
                answers[stages] = _query_stages(track, self._shapes, kind, base, pattern)
            enter(track.ledger, track.repeating, groups, times, answers[stages], number)


def _query_stages(
    track: DeviceReplay, shapes: Shapes, kind: Ints, base: Ints, pattern: Ints
) -> Answers:
    """Return the counts of the stateless stages that see any row, a few rows at a time."""
    spaces = {track.kinds[number].space for number in np.flatnonzero(np.bincount(kind)).tolist()}
    wires = tuple(wire for wire in track.repeating if spaces & {*wire.spaces})
    answers = {w.stage.name: np.empty((len(w.counters), len(kind)), np.int64) for w in wires}
    stages = Stages(wires)
    for start in range(0, len(kind), ROWS_PER_QUERY):
        rows = slice(start, start + ROWS_PER_QUERY)
        batch = shapes.measure(track.kinds, kind[rows], base[rows], pattern[rows])
        for stage, counts in stages.run(batch, {}).items():
            answers[stage][:, rows] = counts
    return answers


def group_places(site: Ints, zone: Ints, mixed: np.ndarray) -> Mapping[bool, Groups]:
    """Group all rows, and separately those over several arrays."""
    groups = {False: group_rows(site, zone, np.ones(len(site), np.bool_))}
    return groups | ({True: group_rows(site, zone, mixed)} if mixed.any() else {})


def enter(
    ledger: Ledger,
    wires: Sequence[Wire],
    groups: Mapping[bool, Groups],
    times: Ints,
    answers: Answers,
    number: Ints,
) -> None:
    """Add the counts of rows that occurred `times` (n, scopes): those of row i are
    `answers[stage][:, number[i]]`.

    Stages that saw no row have no answers.
    """
    for wire in wires:
        for mixed, members in groups.items() if wire.stage.name in answers else ():
            many, sums = members.sum(answers[wire.stage.name], number, times)
            scope, group = np.nonzero(many)
            keys = members.site[group], members.zone[group], scope
            ledger.add_sums(wire, *keys, sums[scope, group], mixed)


class SampleCounter:
    """Counts the texture samples of a launch for all devices, batch by batch."""

    def __init__(
        self,
        launch: Launch,
        instructions: pa.Table,
        tracks: Sequence[DeviceReplay],
        sites: Sites,
        zones: Zones,
    ) -> None:
        self._reader = SampleReader(launch, instructions)
        self._tracks = tracks
        self._sites = sites
        self._zones = zones

    def take(self, batch: pa.RecordBatch) -> None:
        """Count rows of TEXELS."""
        for samples in self._reader.read(batch):
            self._count(samples)

    def _count(self, samples: Samples) -> None:
        site, zone = locate(samples, self._sites, self._zones)
        groups = group_places(site, zone, np.zeros(len(site), np.bool_))
        answers: dict[str, Answers] = {}
        for track in self._tracks:
            wires = [wire for wire in track.repeating if "texture" in wire.spaces]
            stages = repr([wire.stage for wire in wires])
            if stages not in answers:
                answers[stages] = Stages(tuple(wires)).run(samples.batch, {})
            times = track.placement.times(samples.block)
            enter(track.ledger, wires, groups, times, answers[stages], np.arange(len(site)))


def locate(samples: Samples, sites: Sites, zones: Zones) -> tuple[Ints, Ints]:
    """Return the site and the zone of each row, (n,)."""
    site = sites.locate(samples.pc, np.full(len(samples.pc), Space.TEXTURE, np.int64))
    place = np.array([(Space.TEXTURE << SPACE_SHIFT) + window(samples.texture)], np.int64)
    return site, np.repeat(zones.find(place), len(site))


ENTRIES = 1 << 15
"""The most path entries that are summed at a time; a longer path is summed alone."""


class Paths(Protocol):
    """The paths of a launch, by identifier."""

    def parts(self, identifiers: Ints) -> Iterator["Part"]:
        """Yield the paths with identifiers (n,), which must exist."""


class HistoryCounter:
    """Counts the instructions that the warps of a launch ran, for all devices, batch by batch."""

    def __init__(
        self, launch: Launch, instructions: pa.Table, tracks: Sequence[DeviceReplay]
    ) -> None:
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
                runs = iter(sum_paths(rows, every, self._blocks))
                for scopes in self._runs:
                    scopes[:] = [before + next(runs) for before in scopes]

    def close(self) -> None:
        """Add the counts to every device's ledger, with the counters of the launch itself."""
        for track, scopes in zip(self._tracks, self._runs, strict=True):
            for scope, launched in enumerate(track.placement.count_scopes()):
                if launched:
                    counts = count_control(self._instructions, scopes[scope])
                    track.ledger.add_by_pc(scope, counts)
                    track.ledger.add_by_pc(scope, count_launched(self._launch, launched))


def _cut(part: "Part") -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield paths in parts of at most ENTRIES entries, or of one path, with their index in the
    request.
    """
    batch, place, which = part
    lengths = np.diff(batch["blocks"].offsets.to_numpy())[place]
    group = np.cumsum(lengths) // ENTRIES
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(place)], strict=True):
        yield _rows(batch, place[start:end]), which[start:end]


def _rows(batch: pa.RecordBatch, place: Ints) -> pa.RecordBatch:
    """Return some rows; contiguous rows, the common case, are sliced without a copy."""
    first, size = int(place[0]), len(place)
    if (place == np.arange(first, first + size)).all():
        return batch.slice(first, size)
    return batch.take(pa.array(place))

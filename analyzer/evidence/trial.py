"""Trials: the cost of an access if an array had longer rows, another base, or were a texture.

Each trial replays the whole launch, but only the first stages that see the accesses, since their
counts depend on no cache.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np
import polars as pl

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.device.device import Device
from ...models.replay.device.fallback import adapt_kinds
from ...models.replay.device.wiring import wire
from ...models.replay.histogram.stages import Stages
from ...models.replay.interface.model import ACCESSES, ROW_SHIFT, Batch, Image, Ints
from ...models.replay.interface.options import ReplayOptions, Wish, read_changes
from ...models.replay.replay import replay_in_jobs
from ...models.replay.rows.patterns import Shapes
from ...models.replay.rows.sites import Sites, read_sites
from ...models.replay.schedule.place import place
from ...models.replay.suppose import Usage, read_usage, suppose_launches
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Array, Space
from ...traces.unique import sorted_unique

ENOUGH = 1 << 14
"""Rows of an instruction that are enough to judge the others."""
ROWS_PER_QUERY = 1 << 12
MOVED, SECTOR = "bytes_moved", 32
COLUMNS = ("pc", "space", "base", "block", "pattern")
CACHED_ROWS = 1 << 18
"""Launches of up to this many rows are read once for all rules and devices: 10 MB."""

Columns = Mapping[str, Ints]


@dataclass(frozen=True)
class Rows:
    """The accesses of a launch, for rules that read them repeatedly."""

    trace: LaunchTrace

    def batches(self) -> Iterable[Columns]:
        """Read the accesses of a launch, or return the cached ones."""
        return self._cached if self.trace.count("accesses") <= CACHED_ROWS else self._read()

    @cached_property
    def _cached(self) -> Sequence[Columns]:
        return [*self._read()]

    def _read(self) -> Iterator[Columns]:
        for batch in self.trace.access_batches(COLUMNS):
            yield dict(zip(COLUMNS, integers(batch, *COLUMNS), strict=True))


@dataclass(frozen=True, slots=True)
class Trial:
    """A what-if option as typed, and the launch's raw counters with it."""

    typed: str
    sums: Mapping[str, int]

    def total(self, *counters: str) -> int:
        """Return the sum of some raw counters."""
        return sum(self.sums.get(name, 0) for name in counters)


@dataclass(frozen=True)
class Trials:
    """Trials of one launch on one device; each is made once."""

    read: Rows
    device: Device
    dlcm: str
    _results: dict[str, Trial | None] = field(default_factory=dict)
    _textured: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)

    @property
    def trace(self) -> LaunchTrace:
        """The launch."""
        return self.read.trace

    @cached_property
    def usage(self) -> Mapping[str, Usage]:
        """The access shape of each array of the launch."""
        return read_usage(self.trace)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        """The launch's arrays by name."""
        return {array.name: array for array in self.trace.launch.arrays}

    def element(self, name: str) -> int:
        """Return the bytes of an element of an array, at least 1."""
        return self.arrays[name].itemsize or self.usage[name].element or 1

    def suppose(self, pad: Mapping[str, Wish] = {}, align: Mapping[str, Wish] = {}) -> Trial | None:
        """Replay with changed arrays; None if they cannot be changed."""
        typed = " ".join(
            f"--{option} {name}={wish}"
            for option, wishes in (("pad", pad), ("align", align))
            for name, wish in wishes.items()
        )
        if typed not in self._results:
            try:
                changes = read_changes(pad, align)
                (moved,) = suppose_launches([self.trace], changes, usage=self.usage)
                self._results[typed] = Trial(typed, self._count(moved))
            except CutraceError:
                self._results[typed] = None
        return self._results[typed]

    def as_recorded(self) -> Trial:
        """Replay the launch unchanged."""
        if "" not in self._results:
            self._results[""] = Trial("", self._count(self.trace))
        return self._results[""] or Trial("", {})

    def through_texture(self, pc: int, name: str) -> tuple[int, int]:
        """Return the bytes that a load moves, and those that a texture cache would fetch instead.

        The texture has two dimensions if the array has rows, else one. Zeros if the device has no
        such cache.
        """
        if (pc, name) not in self._textured:
            self._textured[pc, name] = self._through_texture(pc, name)
        return self._textured[pc, name]

    def _through_texture(self, pc: int, name: str) -> tuple[int, int]:
        image, wires = self._image(name), wire(self.device.stages, self.device.file)
        plain = next((w for w in wires if "global" in w.direct and MOVED in w.counters), None)
        unit = next((w for w in wires if "texture" in w.direct and MOVED in w.counters), None)
        cache = next((w for w in wires if unit and unit.stage.name in w.after), None)
        if not (image and plain and unit and cache and "fills" in cache.counters):
            return 0, 0
        placement = place(self.device.chip, self.trace.launch.blocks)
        coalescer, stages, moved = plain.build(), Stages((unit, cache)), [0, 0]
        for batch, block in self.rows(pc):
            units = {"sm": placement.sm(block), "cluster": placement.cluster(block)}
            answers = stages.run(_as_texels(batch, image), units)
            fills = answers[cache.stage.name][cache.counters.index("fills")].sum()
            moved[0] += int(coalescer.step(batch).counts[MOVED].sum())
            moved[1] += int(fills) * SECTOR
        return moved[0], moved[1]

    def starts(self, pc: int, array: Array) -> Ints:
        """Return the byte offsets in an array at which an instruction's rows begin."""
        parts = [np.zeros(0, np.int64)]
        for batch, _ in self.rows(pc):
            first = batch.active.argmax(axis=1)
            parts.append(sorted_unique(batch.addresses[np.arange(len(batch)), first]))
        into = sorted_unique(np.concatenate(parts)) - array.offset
        inside: Ints = into[(into >= 0) & (into < array.bytes)]
        return inside

    def _image(self, name: str) -> Image | None:
        array = self.arrays.get(name)
        if array is None or name not in self.usage:
            return None
        if len(array.shape) > 1 and array.itemsize:
            row = array.pitch or array.shape[-1] * array.itemsize
            return Image(array.offset, row, -(-array.bytes // row))
        return Image(array.offset, array.bytes, 1, array.bytes, is_fetch=True)

    @cached_property
    def _sites(self) -> Sites:
        return read_sites(self.trace.instructions(), self.dlcm)

    def rows(self, pc: int) -> Iterator[tuple[Batch, Ints]]:
        """Yield the first rows of an instruction in global memory, and their blocks."""
        sites = self._sites
        kinds = adapt_kinds(sites.kinds, self.device.capability, self.dlcm)
        shapes = Shapes(self.trace.pattern_store())
        row_count = 0
        for columns in self.read.batches():
            rows = np.flatnonzero((columns["pc"] == pc) & (columns["space"] == Space.GLOBAL))
            for start in range(0, len(rows), ROWS_PER_QUERY):
                part = rows[start : start + ROWS_PER_QUERY]
                site = sites.locate(columns["pc"][part], columns["space"][part])
                base, kind = columns["base"][part], sites.kind[site]
                pattern, block = columns["pattern"][part], columns["block"][part]
                yield shapes.rebuild(kinds, kind, base, pattern), block
                row_count += len(part)
                if row_count >= ENOUGH:
                    return

    def _count(self, trace: LaunchTrace) -> Mapping[str, int]:
        direct = tuple(s for s in self.device.stages if {*s.sources} <= {*ACCESSES})
        device = replace(self.device, stages=direct)
        options = ReplayOptions(dlcm=self.dlcm, code="ptx", as_if=True, caches=False)
        (counts,) = replay_in_jobs(trace, [device], options)
        numbers = [c for c, t in counts.counts.schema.items() if t == pl.Int64]
        return counts.counts.select(pl.col(numbers).sum()).row(0, named=True)


def _as_texels(batch: Batch, image: Image) -> Batch:
    """Map the same addresses to texel positions."""
    kind = replace(batch.kinds[int(batch.kind[0])], space="texture", image=image)
    into = np.where(batch.active, batch.addresses - image.base, 0)
    y, x = np.divmod(into, image.row_bytes)
    return Batch((kind,), np.zeros_like(batch.kind), x | y << ROW_SHIFT, batch.active, batch.row)

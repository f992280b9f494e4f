"""Trials: what an access would cost if an array had longer rows, began elsewhere, or was a texture.

Each is a replay of the whole launch, with the stages alone that see the accesses first: what they
count depends on no cache.
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
from ...models.replay.whatif.suppose import suppose_launches
from ...models.replay.whatif.usage import Usage, read_usage
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Array, Space
from ...traces.unique import sorted_unique

ENOUGH = 1 << 14
"""Rows of an instruction from which the rest may be told."""
ROWS_PER_QUERY = 1 << 12
MOVED, SECTOR = "bytes_moved", 32
COLUMNS = ("pc", "space", "base", "block", "pattern")
CACHED_ROWS = 1 << 18
"""Rows of a launch up to which they are read once for all rules and devices: 10 MB."""

Columns = Mapping[str, Ints]


@dataclass(frozen=True)
class Rows:
    """The accesses of a launch as rules read them, again and again."""

    trace: LaunchTrace

    def batches(self) -> Iterable[Columns]:
        """Read the accesses of a launch, or take those that were read before."""
        return self._cached if self.trace.count("accesses") <= CACHED_ROWS else self._read()

    @cached_property
    def _cached(self) -> Sequence[Columns]:
        return [*self._read()]

    def _read(self) -> Iterator[Columns]:
        for batch in self.trace.access_batches(COLUMNS):
            yield dict(zip(COLUMNS, integers(batch, *COLUMNS), strict=True))


@dataclass(frozen=True, slots=True)
class Trial:
    """A what-if option as typed, and the raw counters of the launch with it."""

    typed: str
    sums: Mapping[str, int]

    def total(self, *counters: str) -> int:
        """The sum of some raw counters."""
        return sum(self.sums.get(name, 0) for name in counters)


@dataclass(frozen=True)
class Trials:
    """Trials of one launch on one device, each made once."""

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
        """How the launch goes over each of its arrays."""
        return read_usage(self.trace)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        """The launch's arrays by name."""
        return {array.name: array for array in self.trace.launch.arrays}

    def element(self, name: str) -> int:
        """Bytes of an element of an array, at least 1."""
        return self.arrays[name].itemsize or self.usage[name].element or 1

    def suppose(self, pad: Mapping[str, Wish] = {}, align: Mapping[str, Wish] = {}) -> Trial | None:
        """Replay with arrays changed; None where they cannot be."""
        typed = " ".join(
            f"--{option} {name}={wish}"
            for option, wishes in (("pad", pad), ("align", align))
            for name, wish in wishes.items()
        )
        if typed not in self._results:
            try:
                (moved,) = suppose_launches([self.trace], read_changes(pad, align))
                self._results[typed] = Trial(typed, self._count(moved))
            except CutraceError:
                self._results[typed] = None
        return self._results[typed]

    def as_recorded(self) -> Trial:
        """The launch as it is."""
        if "" not in self._results:
            self._results[""] = Trial("", self._count(self.trace))
        return self._results[""] or Trial("", {})

    def through_texture(self, pc: int, name: str) -> tuple[int, int]:
        """Bytes that a load moves, and that a texture's cache would fetch for the same addresses.

        A texture of two dimensions where the array has rows, else of one. Zeros where the device
        has no such cache.
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
        """The places of an array, in bytes from its first, at which an instruction begins."""
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
        """The first rows of an instruction in global memory, and their blocks."""
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
    """The same addresses as places of a texture."""
    kind = replace(batch.kinds[int(batch.kind[0])], space="texture", image=image)
    into = np.where(batch.active, batch.addresses - image.base, 0)
    y, x = np.divmod(into, image.row_bytes)
    return Batch((kind,), np.zeros_like(batch.kind), x | y << ROW_SHIFT, batch.active, batch.row)

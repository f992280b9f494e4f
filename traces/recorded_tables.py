"""The tables of a launch as NumPy arrays, with derived columns for the checks of `verify`."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base.dataclass import dataclass
from .check_launch import FAR
from .reader import LaunchTrace
from .schema import LANES, MAPPED_BYTES, Launch, Space

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Recorded:
    """A launch in the form that checks use. Integer columns are widened to int64, bases stay
    uint64.
    """

    trace: LaunchTrace

    @property
    def launch(self) -> Launch:
        """Return the launch entry of the manifest."""
        return self.trace.launch

    @cached_property
    def instructions(self) -> pa.Table:
        """Return the table INSTRUCTIONS in one chunk."""
        return self.trace.instructions().combine_chunks()

    def of_instructions(self, name: str) -> Any:
        """Return a column of INSTRUCTIONS: int64 for integers, objects for texts."""
        values = self.instructions[name].to_numpy()
        return values.astype(np.int64) if values.dtype.kind in "iu" else values

    @cached_property
    def block_first(self) -> Ints:
        """Return (blocks + 1,): the first pc of each basic block, and the number of
        instructions."""
        of = self.of_instructions("block")
        return np.searchsorted(of, np.arange(of.max(initial=-1) + 2)).astype(np.int64)

    @cached_property
    def patterns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Return active masks (n,) and offsets (n, 32)."""
        return self.trace.patterns()

    @cached_property
    def extents(self) -> tuple[Ints, Ints]:
        """Return, for each pattern, the lowest and the highest offset of its active lanes,
        bytes."""
        active, offsets = self.patterns
        on = lanes_of(active)
        low = np.where(on, offsets, np.int32(2**31 - 1)).min(axis=1)
        high = np.where(on, offsets, np.int32(-(2**31))).max(axis=1)
        return low.astype(np.int64), high.astype(np.int64)

    @cached_property
    def paths(self) -> dict[str, Ints]:
        """Return the flat columns of PATHS, and `first` (n + 1,), the index of each path's first
        entry.
        """
        table = self.trace.paths().combine_chunks()
        columns = {}
        for name in table.schema.names:
            for chunk in table[name].chunks or [pa.array([], table[name].type)]:
                columns[name] = chunk.flatten().to_numpy().astype(np.int64)
                columns[f"{name} first"] = (chunk.offsets.to_numpy() - chunk.offset).astype(
                    np.int64
                )
        return columns

    @cached_property
    def control(self) -> dict[str, Ints]:
        """Return the columns of CONTROL, and `id`: the warp's number in the grid."""
        batches = list(self.trace.control_batches())
        columns = {
            name: np.concatenate([np.empty(0, np.int64), *(column(b, name) for b in batches)])
            for name in ("block", "warp", "step", "path")
        }
        return columns | {"id": columns["block"] * self.launch.warps + columns["warp"]}

    def accesses(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of the first row and the columns of each batch of ACCESSES."""
        return self._numbered(self.trace.access_batches())

    def texels(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of the first row and the columns of each batch of TEXELS."""
        return self._numbered(self.trace.texel_batches())

    def _numbered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, Any]]]:
        first = 0
        for batch in batches:
            columns = {name: column(batch, name) for name in batch.schema.names}
            columns["id"] = columns["block"] * self.launch.warps + columns["warp"]
            yield first, columns
            first += batch.num_rows

    def lanes(self, warp: Ints) -> Ints:
        """Return the mask of lanes with a thread of the block, for each warp."""
        filled = np.clip(self.launch.threads - warp * LANES, 0, LANES)
        return (np.int64(1) << filled) - 1

    def windows(self, space: Space) -> tuple[Ints, Ints] | None:
        """Return first and last (exclusive) addresses of the arrays of a space, None if unknown."""
        return self._windows.get(space)

    @cached_property
    def _windows(self) -> dict[Space, tuple[Ints, Ints]]:
        launch = self.launch
        spans: dict[Space, list[tuple[int, int]]] = {
            Space.GLOBAL: [],
            Space.CONST: [],
            Space.SURFACE: [],
        }
        for array in launch.arrays:
            if array.space in spans:
                spans[array.space].append((array.offset, array.offset + array.bytes))
        spans[Space.SHARED] = [(0, launch.shared_static + launch.shared_dynamic)]
        spans[Space.LOCAL] = [(0, launch.local_bytes)]
        pairs = {space: np.array(sorted(s), np.int64).reshape(-1, 2) for space, s in spans.items()}
        return {space: (pair[:, 0], pair[:, 1]) for space, pair in pairs.items()}

    @cached_property
    def mapped(self) -> tuple[Ints, Ints]:
        """Return first and last (exclusive) addresses of mapped global memory, in whole pages. The
        first page is mapped even without an array in it: the driver maps some memory itself.
        """
        windows = self.windows(Space.GLOBAL)
        assert windows is not None
        starts, ends = windows[0] // MAPPED_BYTES, -(-windows[1] // MAPPED_BYTES)
        starts, ends = np.append(0, starts), np.append(1, ends)
        is_full = ends > starts
        starts, ends = starts[is_full], np.maximum.accumulate(ends[is_full])
        apart = np.flatnonzero(starts[1:] > ends[:-1])
        first, last = np.append(0, apart + 1), np.append(apart, len(starts) - 1)
        return starts[first] * MAPPED_BYTES, ends[last] * MAPPED_BYTES

    @cached_property
    def outside_lanes(self) -> Ints:
        """Return, for each pc, the number of out-of-bounds lanes in the manifest."""
        lanes: Ints = np.zeros(self.instructions.num_rows, np.int64)
        for outside in self.launch.outside:
            if outside.pc < len(lanes):
                lanes[outside.pc] = min(outside.lanes, FAR)
        return lanes


def column(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column as int64, `base` unchanged, and lists as (rows, length)."""
    values = batch[name]
    if pa.types.is_fixed_size_list(values.type):
        return values.flatten().to_numpy().reshape(len(values), -1)
    array = values.to_numpy()
    return array if name == "base" else array.astype(np.int64)


def lanes_of(masks: npt.NDArray[Any]) -> Flags:
    """Return (n, 32) flags: whether the mask contains the lane."""
    return (masks[:, None].astype(np.int64) >> np.arange(LANES) & 1).astype(bool)


class Finding(NamedTuple):
    """A violated invariant: the first row that breaks it, -1 if no single row does."""

    text: str
    row: int = -1
    rows: int = 1


def report(bad: Flags, text: str, first: int = 0) -> Iterator[Finding]:
    """Yield a finding if any row is bad; `first` is the number of the first row."""
    rows = np.flatnonzero(bad)
    if len(rows):
        yield Finding(text, first + int(rows[0]), len(rows))

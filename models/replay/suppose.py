"""What-if traces: launches with arrays padded or realigned, the code unchanged.

The arrays are laid out again, and the address of each access moves with its array. Rows whose lanes
move by different distances get new patterns.

For a shared-memory array a trace has only the size in bytes. The width of instructions gives the
element size; lanes that walk down a column are a row apart, which gives the row length.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces.column import integers, with_columns
from ...traces.pattern_store import HeldPatterns
from ...traces.reader import LaunchTrace, Trace
from ...traces.schema import Array, Launch, Space
from ...traces.unique import sorted_unique
from .interface.model import Bools, Ints
from .interface.options import Alignment, Changes, Pad, Wish, read_changes
from .launch_view import LaunchView
from .rows.lanes import unpack_masks
from .rows.patterns import Patterns, read_patterns
from .rows.sites import SPACE_SHIFT, Zones, cut_zones, element_bytes

PLACE = ("space", "base", "pattern")
"""The columns of ACCESSES on which the addresses of a row depend."""
WIDEST = 16
"""The largest alignment that an access needs, in bytes."""


@dataclass(slots=True)
class Usage:
    """The usage of an array: `element` and `widest` in bytes, 0 without an access; `strides` counts
    the positive distances of neighbouring lanes, in bytes.
    """

    element: int = 0
    widest: int = 0
    strides: Counter[int] = field(default_factory=Counter)

    def find_row(self, array: Array) -> int | None:
        """Return the stride of most columns if its rows fit in the array, in bytes; else None."""
        columns = Counter({s: n for s, n in self.strides.items() if s > self.widest})
        for stride, times in columns.most_common(1):
            if 2 * times > columns.total() and array.bytes % stride == 0 and stride < array.bytes:
                return stride
        return None


def read_usage(trace: LaunchTrace) -> Mapping[str, Usage]:
    """Read all accesses of a launch; return the usage of each array by name."""
    zones = cut_zones(trace.launch.arrays)
    usages = {array.name: Usage() for array in trace.launch.arrays} | {"": Usage()}
    elements, widths = _widths(trace)
    active, offsets = trace.patterns()
    many = max(1, len(active))
    for batch in trace.access_batches(("pc", *PLACE)):
        pc, pattern, zone = _columns(batch, zones)
        keys, times = np.unique((pc * many + pattern) * len(zones.names) + zone, return_counts=True)
        quotient, zone = np.divmod(keys, len(zones.names))
        pc, pattern = np.divmod(quotient, many)
        for number in sorted_unique(zone).tolist():
            rows = np.flatnonzero(zone == number)
            usage = usages[zones.names[number]]
            pcs = sorted_unique(pc[rows]).tolist()
            usage.element = min([n for n in (usage.element, *(elements[p] for p in pcs)) if n])
            usage.widest = max(usage.widest, *(widths[p] for p in pcs))
            pattern_ids = sorted_unique(pattern[rows])
            counts = np.bincount(pattern[rows], times[rows], many)[pattern_ids].astype(np.int64)
            _add_strides(
                usage.strides, unpack_masks(active[pattern_ids]), offsets[pattern_ids], counts
            )
    return usages


def _columns(batch: pa.RecordBatch, zones: Zones) -> tuple[Ints, Ints, Ints]:
    """Return pc, pattern and zone of each row of a batch of ACCESSES."""
    pc, pattern, space, base = integers(batch, "pc", "pattern", "space", "base")
    return pc, pattern, zones.find((space << SPACE_SHIFT) + base)


def _widths(trace: LaunchTrace) -> tuple[list[int], list[int]]:
    """Return per pc the bytes of an element, and the alignment of an access."""
    rows = trace.instructions().select(["type", "bytes"]).to_pylist()
    widths = [min(WIDEST, row["bytes"] & -row["bytes"]) for row in rows]
    return [element_bytes(row["type"]) or 1 for row in rows], widths


def _add_strides(
    strides: Counter[int], active: Bools, offsets: npt.NDArray[np.int32], times: Ints
) -> None:
    """Count the positive strides from each active lane to the next, each pattern `times` times."""
    steps = np.diff(offsets.astype(np.int64), axis=1)
    rising = (steps > 0) & active[:, 1:] & active[:, :-1]
    pattern, lane = np.nonzero(rising)
    values, number = np.unique(steps[pattern, lane], return_inverse=True)
    counts = np.bincount(number, times[pattern], len(values)).astype(np.int64)
    strides.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))


UNIT = {Space.SHARED: 16}
OTHER_UNIT = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """The padding of an array: rows of `row` bytes grow by `pad` bytes."""

    row: int
    pad: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The address line, `space << SPACE_SHIFT | address`, in segments that each move as a whole.

    All are (segments,): where each begins, its shift upwards, and its rows and their padding (a row
    of 1 byte and no padding by default). `arrays` are the launch's arrays in the new layout, and
    `added` the additional bytes of shared memory, declared and dynamic.
    """

    first: Ints
    shift: Ints
    row: Ints
    pad: Ints
    arrays: tuple[Array, ...]
    added: tuple[int, int]

    def find(self, places: Ints) -> Ints:
        """Return the segment of each place."""
        return np.asarray(np.searchsorted(self.first, places, side="right") - 1, np.int64)

    def move(self, places: Ints) -> Ints:
        """Return the new address of each place."""
        segment = self.find(places)
        into = places - self.first[segment]
        moved = places + self.shift[segment] + into // self.row[segment] * self.pad[segment]
        return np.asarray(moved, np.int64)


_Segment = tuple[int, int, int, int]


def lay_out(
    launch: Launch, rows: Mapping[str, Rows], alignments: Mapping[str, Alignment]
) -> Layout:
    """Compute the new layout of a launch; `CutraceError` if an array to be changed overlaps
    another.
    """
    segments: list[_Segment] = []
    moved: dict[Array, Array] = {}
    added = [0, 0]
    for space in Space:
        segments.append((space << SPACE_SHIFT, 0, 1, 0))
        arrays = sorted((a for a in launch.arrays if a.space == space), key=lambda a: a.offset)
        _refuse_overlap(arrays, {*rows, *alignments})
        carry = 0
        for old, successor in zip(arrays, [*arrays, None][1:], strict=True):
            before, new = carry, _place(old, carry, rows.get(old.name), alignments.get(old.name))
            if new.offset + max(new.bytes, new.pitch) > 1 << SPACE_SHIFT:
                raise CutraceError(
                    f"`{old.name}` would end beyond every address: pad or align less"
                )
            carry += _up(new.offset + new.bytes - (old.offset + old.bytes) - carry, old.space)
            moved[old] = new
            segments.append(_segment(old, new, rows.get(old.name)))
            if successor is None or successor.offset >= old.offset + old.bytes:
                segments.append(((space << SPACE_SHIFT) + old.offset + old.bytes, carry, 1, 0))
            if space == Space.SHARED:
                added[old.offset >= launch.shared_static] += carry - before
    table = np.array(_without_empty(segments), np.int64)
    everywhere = tuple(moved[array] for array in launch.arrays)
    first, shift, row, pad = table.T
    return Layout(first, shift, row, pad, everywhere, (added[0], added[1]))


def _place(old: Array, carry: int, rows: Rows | None, alignment: Alignment | None) -> Array:
    """Return an array at its new address."""
    start = old.offset + carry
    if alignment:
        start += (alignment.beyond - start) % alignment.bytes
    if rows is None:
        return replace(old, offset=start)
    longer = -(-old.bytes // rows.row) * rows.pad
    return replace(old, offset=start, bytes=old.bytes + longer, pitch=rows.row + rows.pad)


def _segment(old: Array, new: Array, rows: Rows | None) -> _Segment:
    """Return the segment of an array."""
    start = (old.space << SPACE_SHIFT) + old.offset
    row, pad = (rows.row, rows.pad) if rows else (1, 0)
    return start, new.offset - old.offset, row, pad


def _without_empty(segments: Sequence[_Segment]) -> list[_Segment]:
    """Keep the last of the segments that begin at one place."""
    return [*{segment[0]: segment for segment in segments}.values()]


def _refuse_overlap(ordered: Sequence[Array], names: set[str]) -> None:
    """Raise `CutraceError` if an array to be moved shares bytes with another."""
    for one, other in pairwise(ordered):
        if other.offset < one.offset + one.bytes and not names.isdisjoint((one.name, other.name)):
            raise CutraceError(
                f"`{one.name}` and `{other.name}` share memory: neither can be padded or aligned"
                " alone"
            )


def _up(bytes_: int, space: Space) -> int:
    """Round up to a multiple that keeps the alignment of all that follows."""
    unit = UNIT.get(space, OTHER_UNIT)
    return -(-bytes_ // unit) * unit


def suppose(trace: Trace, pad: Mapping[str, Wish] = {}, align: Mapping[str, Wish] = {}) -> Trace:
    """Return a trace as if arrays had longer rows, or began at other addresses.

    `pad` maps names to `N` or `"ROW+N"` elements, `align` to `BYTES` or `"BYTES+BEYOND"`. Raises
    `CutraceError` for an array that no launch has, and where the row length is unknown.
    """
    changes = read_changes(pad, align)
    if not changes.names():
        return trace
    return replace(trace, launches=suppose_launches(trace.launches, changes, f"{trace.label}: "))


def suppose_launches(
    launches: Sequence[LaunchTrace],
    changes: Changes,
    where: str = "",
    usage: Mapping[str, Usage] | None = None,
) -> tuple[LaunchTrace, ...]:
    """Return launches with these changes; `where` begins the message about an unknown array.

    `usage` is that of the only launch, if it was read before.
    """
    names = sorted({array.name for one in launches for array in one.launch.arrays})
    for name in sorted(changes.names() - {*names}):
        there = f"; there are {', '.join(names)}" if names else "; the trace has no arrays"
        raise CutraceError(f"{where}no array `{name}` to change{nearest(name, names)}{there}")
    plans = [_plan(launch, changes, usage) for launch in launches]
    for name, wish in changes.pads.items():
        if not any(name in plan.rows for plan in plans):
            raise CutraceError(_no_rows(wish, plans))
    return tuple(_move(plan) for plan in plans)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The changes of one launch; `lacking` are arrays with an unknown row length."""

    trace: LaunchTrace
    used: Mapping[str, Usage]
    rows: Mapping[str, Rows]
    pads: Mapping[str, Pad]
    alignments: Mapping[str, Alignment]
    lacking: tuple[str, ...]


def _plan(trace: LaunchTrace, changes: Changes, usage: Mapping[str, Usage] | None) -> _Plan:
    own = {array.name: array for array in trace.launch.arrays}
    used = (usage or read_usage(trace)) if changes.names() & own.keys() else {}
    pads = {n: p for n, p in changes.pads.items() if n in own and used[n].widest}
    row_lengths = {name: _find_row(pad, own[name], used[name]) for name, pad in pads.items()}
    rows = {
        name: Rows(row, pads[name].elements * _element(own[name], used[name]))
        for name, row in row_lengths.items()
        if row is not None
    }
    alignments = {n: a for n, a in changes.alignments.items() if n in own}
    return _Plan(trace, used, rows, pads, alignments, tuple(pads.keys() - rows.keys()))


def _find_row(pad: Pad, array: Array, used: Usage) -> int | None:
    """Return the bytes of a row: from the user, from the array's shape, or from strides."""
    if pad.row is not None:
        return pad.row * _element(array, used)
    if array.pitch:
        return array.pitch
    if len(array.shape) > 1:
        return array.shape[-1] * array.itemsize
    return used.find_row(array)


def _element(array: Array, used: Usage) -> int:
    """Return the bytes of an element: from the array, or else from its instructions."""
    return array.itemsize or used.element


def _no_rows(pad: Pad, plans: list[_Plan]) -> str:
    """Return the message about an array that cannot be padded."""
    uses = [plan.used[pad.array] for plan in plans if pad.array in plan.pads]
    if not uses:
        return f"{pad}: no launch accesses `{pad.array}`"
    strides = sorted({stride for used in uses for stride in used.strides if stride > used.widest})
    stride_text = f"strides of {', '.join(map(str, strides[:6]))} bytes" if strides else "no stride"
    return (
        f"{pad}: its accesses do not tell how long a row of `{pad.array}` is ({stride_text} between"
        f" lanes); say it in elements, --pad {pad.array}=ROW+{pad.elements}"
    )


def _move(plan: _Plan) -> LaunchTrace:
    """Return the launch with the plan applied."""
    trace = plan.trace
    if not plan.rows and not plan.alignments:
        return replace(trace, what_if=(*trace.what_if, *_describe(plan, None)))
    layout = lay_out(trace.launch, plan.rows, plan.alignments)
    _check_alignment(plan, layout)
    return MovedLaunch.of(
        trace,
        launch=_launch(trace.launch, layout),
        what_if=(*trace.what_if, *_describe(plan, layout)),
        layout=layout,
    )


def _launch(launch: Launch, layout: Layout) -> Launch:
    """Return a launch with the arrays of a layout, and the shared memory that they need."""
    declared, dynamic = layout.added
    return replace(
        launch,
        arrays=layout.arrays,
        shared_static=launch.shared_static + declared,
        shared_dynamic=launch.shared_dynamic + dynamic,
        resources=tuple(
            replace(r, shared_bytes=r.shared_bytes + declared) for r in launch.resources
        ),
    )


def _check_alignment(plan: _Plan, layout: Layout) -> None:
    """Raise `CutraceError` if a wide access would become misaligned: devices fault there."""
    for old, new in zip(plan.trace.launch.arrays, layout.arrays, strict=True):
        widest = plan.used[old.name].widest or 1
        wish = plan.pads.get(old.name)
        if wish and old.name in plan.rows and plan.rows[old.name].pad % widest:
            elements = widest // _element(old, plan.used[old.name])
            raise CutraceError(
                f"{wish}: `{old.name}` is accessed {widest} bytes at a time, and rows must stay"
                f" aligned to that; pad by a multiple of {elements}"
            )
        if (new.offset - old.offset) % widest:
            raise CutraceError(
                f"{plan.alignments[old.name]}: `{old.name}` is accessed {widest} bytes at a time,"
                " and must stay aligned to that"
            )


def _describe(plan: _Plan, layout: Layout | None) -> Iterator[str]:
    """Yield descriptions of the changes."""
    for name, rows in plan.rows.items():
        yield f"what-if: rows of `{name}` padded from {rows.row} to {rows.row + rows.pad} bytes"
    for name in plan.lacking:
        yield f"`{name}` is as recorded: accesses of this launch do not tell how long its rows are"
    for name, alignment in plan.alignments.items():
        past = f"{alignment.beyond} bytes past " if alignment.beyond else "at "
        yield f"what-if: `{name}` begins {past}a multiple of {alignment.bytes} bytes"
    if layout and any(layout.added):
        yield f"what-if: {sum(layout.added)} bytes more of shared memory a block"


FAR = 1 << 31
"""The exclusive limit of offsets in a pattern."""
_ADDRESS = (1 << SPACE_SHIFT) - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Rows of a batch: `place` (n,) of the base, `pattern` (n,), `segment` (n,), and whether each
    gets a new pattern: rows in one padded segment, or over several segments.
    """

    place: Ints
    pattern: Ints
    segment: Ints
    padded: Bools
    over: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _NewPatterns:
    """New patterns: `keys` (k,) of accesses in padded arrays, rising; `active` and `offsets` of
    those, then of the accesses over several segments in the order of the trace.
    """

    keys: Ints
    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]


@dataclass(frozen=True)
class MovedLaunch(LaunchView):
    """A launch, `before`, in the address space of `layout`; `launch` has the moved arrays."""

    layout: Layout = field(kw_only=True, repr=False)

    def pattern_store(self) -> HeldPatterns:
        """Return the recorded patterns, then the new ones."""
        old, new = self._recorded, self._new_patterns
        return HeldPatterns(
            np.concatenate([old.active, new.active]), np.concatenate([old.offsets, new.offsets])
        )

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses with their new bases and patterns, those columns among others."""
        next_pattern = len(self._recorded.active) + len(self._new_patterns.keys)
        for batch in self.before.access_batches(
            columns and tuple(dict.fromkeys((*columns, *PLACE)))
        ):
            at = self._locate(batch)
            pattern = at.pattern.copy()
            keys = np.searchsorted(self._new_patterns.keys, self._keys(at))
            pattern[at.padded] = len(self._recorded.active) + keys
            over = int(at.over.sum())
            pattern[at.over] = np.arange(next_pattern, next_pattern + over)
            next_pattern += over
            base = self.layout.move(at.place) & _ADDRESS
            yield with_columns(batch, base=base.view(np.uint64), pattern=pattern.astype(np.uint32))

    def access_batches_of(self, blocks: Ints, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all batches: which patterns are new depends on those before."""
        return self.access_batches(columns)

    @cached_property
    def _recorded(self) -> Patterns:
        return read_patterns(*self.before.patterns())

    @cached_property
    def _new_patterns(self) -> _NewPatterns:
        """Read all accesses once, and compute the patterns that they need."""
        keys: list[Ints] = [np.zeros(0, np.int64)]
        over: list[tuple[Ints, Ints]] = []
        for batch in self.before.access_batches(PLACE):
            at = self._locate(batch)
            keys.append(sorted_unique(self._keys(at)))
            over.append((at.place[at.over], at.pattern[at.over]))
        distinct = sorted_unique(np.concatenate(keys))
        place, pattern = self._examples(distinct)
        places = np.concatenate([place, *(p for p, _ in over)])
        patterns = np.concatenate([pattern, *(p for _, p in over)])
        return _NewPatterns(
            distinct, self._recorded.active[patterns], self._offsets(places, patterns)
        )

    def _locate(self, batch: pa.RecordBatch) -> _Places:
        space, base, pattern = integers(batch, "space", "base", "pattern")
        place, pattern_table = (space << SPACE_SHIFT) + base, self._recorded
        segment = self.layout.find(place)
        low, high = (
            self.layout.find(place + end[pattern])
            for end in (pattern_table.lowest, pattern_table.highest)
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
        quotient, phase = np.divmod(keys, int(self.layout.row.max()))
        segment, pattern = np.divmod(quotient, max(1, len(self._recorded.active)))
        row, below = self.layout.row[segment], -self._recorded.lowest[pattern] - phase
        rows = np.maximum(-(-below // row), 0)
        return self.layout.first[segment] + phase + rows * row, pattern

    def _offsets(self, places: Ints, patterns: Ints) -> npt.NDArray[np.int32]:
        """Return the new offsets of the lanes of these rows from their bases, (n, 32) int32."""
        lanes = places[:, None] + self._recorded.offsets[patterns]
        moved = self.layout.move(lanes.ravel()).reshape(lanes.shape)
        offsets = moved - self.layout.move(places)[:, None]
        offsets[~unpack_masks(self._recorded.active[patterns])] = 0
        if len(offsets) and np.abs(offsets).max() >= FAR:
            raise CutraceError(f"launch {self.number}: padded so, lanes would lie 2 GiB apart")
        return offsets.astype(np.int32)

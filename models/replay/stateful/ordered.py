"""Ordered counting: the rows of a launch in issue order, through the stages that keep state.

Rows are buffered until all blocks of a wave are read, then sorted and sent through the caches.
Stages in front of the caches are queried once per distinct row; their requests are repeated for all
equal rows.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import field, replace
from functools import partial
from math import lcm
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base import progress
from ....base.cores import cores
from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ....traces.schema import Space
from ..histogram import counting
from ..histogram.accesses import DeviceReplay, locate
from ..histogram.hash_table import NONE, Table, new_table
from ..histogram.histogram import Pool, Repeated, extend_pool, join_flows, make_pool
from ..histogram.stages import TURNS, Answers, Flow, Stages, split_first
from ..interface.model import Batch, Ints
from ..rows.patterns import Reaches, Shapes
from ..rows.sites import SPACES, Sites, Zones
from ..rows.texels import Samples, read_samples
from ..schedule.turns import TURN_BITS, Widths
from . import reorder_loops
from .cache_sim import HEAD_BITS, SCHEDULERS
from .reorder_buffer import ReorderBuffer
from .reorder_loops import Chosen, Moves, Places, Waiting, Windows

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace


ROWS_PER_QUERY = 1 << 12
"""Distinct rows per query of the stages in front."""
POOLED = 1 << 16
POOLED_REQUESTS = 1 << 19
"""Distinct rows, and requests, from which on the pooled requests are dropped."""


ROW_DTYPE = np.dtype([("shift", "<i8"), ("number", "<i4"), ("group", "<i4")])
"""A row that is sent."""
RowBuffer: TypeAlias = tuple[NDArray[np.void], NDArray[np.integer[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRows:
    """Some n rows in order. Per row: CHOSEN, which are the number of its distinct row (none for
    texels), its distance from that in bytes, and its group; and its units, (n,), as `Units`
    packs them.

    `samples` is the number of texel rows; the shift of such a row is its number. `fresh` is the
    number of new distinct rows. `buffer` holds the rows.
    """

    rows: NDArray[np.void]
    units: NDArray[np.integer[Any]]
    samples: int
    fresh: int
    buffer: RowBuffer


@dataclass(slots=True)
class DistinctRows:
    """The `many` distinct rows so far, and the requests that the stages in front pass on for them:
    `pools`, by name of the stage.

    A distinct row is a kind, a pattern, and a base modulo the period of the stages in front.
    """

    track: DeviceReplay
    shapes: Shapes
    most: int
    pools: dict[str, Pool] = field(default_factory=dict)
    _period: int = field(init=False)
    _lift: int = field(init=False)
    _table: Table = field(init=False)
    _answered_rows: int = 0
    _buffers: list[RowBuffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Allocate a table with room for `most` rows beyond the pooled ones."""
        self._period = lcm(1, *(wire.period for wire in self.track.front))
        self._lift = self._period * -(-(1 << 32) // self._period)  # offsets reach 2 GiB below it
        self._table = new_table(POOLED + self.most)

    @property
    def width(self) -> int:
        """The mean number of requests per distinct row, at the stage with the most requests."""
        requests = max((len(pool.kind) for pool in self.pools.values()), default=0)
        return requests // max(1, self._answered_rows)

    def choose(
        self,
        order: Ints,
        waiting: Waiting,
        widths: Widths,
        units: NDArray[np.integer[Any]],
        windows: Windows,
    ) -> OrderedRows:
        """Number rows, at most `most`, and query the stages about new ones; `widths` are those of
        keys.
        """
        table, schedule = self._table, self.track.order
        pooled = sum(len(pool.kind) for pool in self.pools.values())
        if table.size.keys > POOLED or pooled > POOLED_REQUESTS:
            table.slots.fill(NONE)
            table.size.keys = self._answered_rows = 0
            self.pools.clear()
        buffers = self._buffers.pop() if self._buffers else self._grow(units.dtype)
        rows, unit = buffers[0][: len(order)], buffers[1][: len(order)]
        places = Places(schedule.places, widths, schedule.seating, units, schedule.warps)
        moves = Moves(len(self.shapes), self._period, self._lift)
        chosen = Chosen(*(rows[name] for name in Chosen._fields))
        loops = loops_of(reorder_loops, len(order))
        samples = loops.choose(order, waiting, places, windows, table, moves, chosen, unit)
        fresh = table.size.keys - self._answered_rows
        self._query_stages(table.size.keys)
        return OrderedRows(rows, unit, samples, fresh, buffers)

    def forget(self, selection: OrderedRows) -> None:
        """Recycle the buffer of rows that are no longer in use."""
        self._buffers.append(selection.buffer)

    def _grow(self, word: np.dtype[np.integer[Any]]) -> RowBuffer:
        """Return room for `most` rows; pages that are not touched take no memory."""
        return np.empty(self.most, ROW_DTYPE), np.empty(self.most, word)

    def _query_stages(self, many: int) -> None:
        """Query the stages in front about the new rows."""
        if many == self._answered_rows:
            return
        passed: dict[str, list[Batch]] = {}
        for start in range(self._answered_rows, many, ROWS_PER_QUERY):
            some = slice(start, min(start + ROWS_PER_QUERY, many))
            kind, pattern = np.divmod(self._table.first[some], len(self.shapes))
            phase = self._table.second[some]
            front = Stages(self.track.front)
            batch = self.shapes.rebuild(self.track.kinds, kind, phase + self._lift, pattern)
            front.run(batch, {}, listeners=self.track.lasting)
            for name, flow in front.passed.items():
                moved = replace(flow, row=flow.row + start - self._answered_rows)
                passed.setdefault(name, []).append(moved)
        for name in {**self.pools, **passed}:  # new rows may pass nothing to one that others reach
            pool = make_pool(join_flows(passed.get(name, [])), many - self._answered_rows)
            self.pools[name] = extend_pool(self.pools.get(name), pool, self._answered_rows)
        self._answered_rows = many


def flows_of(
    pools: Mapping[str, Pool], sampled: Mapping[str, Pool], selection: OrderedRows
) -> Mapping[str, Flow]:
    """Return the requests that the stages in front pass on for some rows."""
    rows = selection.rows
    if not selection.samples:
        return {name: Repeated(pool, rows) for name, pool in pools.items() if len(pool.kind)}
    flows: dict[str, list[Batch]] = {}
    of_access = np.flatnonzero(rows["number"] >= 0)
    of_sample = np.flatnonzero(rows["number"] < 0)
    for name, pool in pools.items():
        batch = pool.repeat(rows["number"][of_access], rows["shift"][of_access], of_access)
        flows.setdefault(name, []).append(batch)
    for name, pool in sampled.items():
        batch = pool.repeat(rows["shift"][of_sample], np.zeros_like(of_sample), of_sample)
        flows.setdefault(name, []).append(batch)
    joined = {name: join_flows(parts) for name, parts in flows.items()}
    return {name: flow for name, flow in joined.items() if flow is not None}


WORD = 8
"""The most bytes of a word."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """A packed word per place of a block (`turns.place_of`), (places,), with its unit in each
    scope. A scope that does not fit into the word has a table from places to units in `tables`.
    """

    words: NDArray[np.integer]
    layout: np.dtype[np.void]
    tables: Mapping[str, Ints]

    def split(self, words: NDArray[np.integer]) -> Mapping[str, Ints]:
        """Unpack the units of rows with these words, (n,), by scope."""
        if self.tables:
            return {scope: unit[words] for scope, unit in self.tables.items()}
        each = words.view(self.layout)
        return {scope: each[scope] for scope in self.layout.names or ()}


def turn_of(waiting: Waiting, widths: Widths, rows: Ints, warps: int) -> Ints:
    """Return the turn of each row as `cache_sim.Requests` has it; an SM has `warps` warps."""
    turn, seat = waiting.key[rows].astype(np.int64), 0
    if widths.turn:
        turn >>= widths.sm + TURN_BITS
        seat = widths.seat
    else:
        turn >>= TURN_BITS
    turn <<= HEAD_BITS
    turn |= seat << 1 | (warps > SCHEDULERS)
    return turn


def pack_units(track: DeviceReplay) -> Units:
    """Return the units of a launch's blocks, in all scopes that the stages of a device have."""
    order, blocks = track.order, np.arange(track.placement.blocks)
    units = {"sm": order.by_place(order.sm)}
    for scope in sorted({wire.stage.scope for wire in track.lasting}):
        if scope == "cluster":
            units[scope] = order.by_place(track.placement.cluster(blocks))
        elif scope == "gpc":
            units[scope] = order.by_place(track.placement.gpc())
        elif scope.isdecimal():
            units[scope] = order.by_place(blocks % track.device.chip.sms // int(scope))
    each = np.min_scalar_type(max(int(unit.max(initial=0)) for unit in units.values()))
    size = 1 << (len(units) * each.itemsize - 1).bit_length()
    layout = np.dtype({"names": [*units], "formats": [each] * len(units), "itemsize": size})
    if size > WORD:
        return Units(np.arange(len(units["sm"])), layout, units)
    words = np.zeros(len(units["sm"]), layout)
    for scope, unit in units.items():
        words[scope] = unit
    return Units(words.view(f"i{size}"), layout, {})


T = TypeVar("T")

WORTH = 1 << 18
"""Rows of a launch from which on a second thread is worth its start."""
BEHIND = 1
AHEAD = 2
"""Batches that are read ahead."""
WAITING, QUEUED_REQUESTS = 3, 1 << 20
"""The capacity of the queue: the parts that are sent while the next wave is read, and the requests
of their distinct rows.
"""


@dataclass(slots=True)
class Line:
    """A queue with a worker thread that runs tasks in order; `behind` is the queue of the next
    step.
    """

    thread: ThreadPoolExecutor
    behind: "Line | None" = None
    most: int = field(default_factory=lambda: WAITING)
    _waiting: deque[tuple[int, Future[Any]]] = field(default_factory=deque)

    def submit(self, size: int, work: Callable[..., object], *arguments: Any) -> None:
        """Enqueue a task of some size, once there is room; raise the error of an earlier task."""
        while self._waiting and (
            len(self._waiting) >= self.most
            or size + sum(s for s, _ in self._waiting) > QUEUED_REQUESTS
        ):
            self._waiting.popleft()[1].result()
        self._waiting.append((size, self.thread.submit(work, *arguments)))

    def finish(self) -> None:
        """Wait for all tasks; raise the error of one that failed."""
        while self._waiting:
            self._waiting.popleft()[1].result()
        if self.behind is not None:
            self.behind.finish()


def _is_worth(rows: int) -> bool:
    return rows >= WORTH and cores() > 1


@contextmanager
def assembly_line(rows: int) -> Iterator[Line | None]:
    """Return a queue for `rows` rows; None if the rows are few or the machine has one core."""
    if not _is_worth(rows):
        yield None
        return
    with ThreadPoolExecutor(1, "behind") as last, ThreadPoolExecutor(1, "replay") as thread:
        yield Line(thread, Line(last, most=BEHIND))


@contextmanager
def read_ahead(items: Iterator[T], rows: int) -> Iterator[Iterator[T]]:
    """Produce items in a thread, AHEAD of their consumer, if the rows are many."""
    if not _is_worth(rows):
        yield items
        return
    with ThreadPoolExecutor(1, "read") as thread:
        yield _ahead(thread, items)


def _ahead(thread: ThreadPoolExecutor, items: Iterator[T]) -> Iterator[T]:
    context = copy_context()  # the thread reports the rows that it reads

    def read() -> T | None:
        return context.run(next, items, None)

    waiting = deque(thread.submit(read) for _ in range(AHEAD))
    while (item := waiting.popleft().result()) is not None:
        waiting.append(thread.submit(read))
        yield item


ROWS_PER_BATCH, REQUESTS = 1 << 17, 1 << 18
"""Rows per batch through the stages, and about how many requests."""
AT_RANDOM, FRESH = 1 << 13, 4
"""Rows of the first batches, and of all batches where more than one row in FRESH is new: such rows
bring many requests.
"""
MOST_PENDING = 1 << 21
"""The most buffered rows: a wave with more is sorted in parts."""
READ = 1 << 18
"""The most rows per read."""
NEVER = np.iinfo(np.int64).max
"""A block that no launch has."""
CONST, LOCAL = 1 << 59, 1 << 55
"""The address of constants in the memory that caches see, and the window of local memory: bytes per
thread.
"""


@dataclass(slots=True)
class Ordering:
    """The pipeline of one device: buffer `rows`, sort them, and send them through its stages.

    Caches of the whole chip begin as the stages of a launch `before` left them, those of SMs empty.
    """

    track: DeviceReplay
    sites: Sites
    shapes: Shapes
    zones: Zones
    rows: int
    pipeline: Line | None = None
    before: tuple[Stages, ...] = ()
    is_counted: bool = True
    buffer: ReorderBuffer = field(init=False)
    _distinct: DistinctRows = field(init=False)
    stages: tuple[Stages, Stages] = field(init=False)
    _ends: Ints = field(init=False)
    _units: Units = field(init=False)
    _is_subscribed: bool = field(init=False)
    _warps: int = 0  # of an SM, if stores merge
    _flows: dict[str, list[Batch]] = field(default_factory=dict)
    _sums: dict[str, Ints] = field(default_factory=dict)
    _samples: int = 0
    _batch_rows: int = field(default_factory=lambda: min(ROWS_PER_BATCH, AT_RANDOM))

    def __post_init__(self) -> None:
        track = self.track
        first, rear = split_first(track.lasting)
        self.stages = Stages(first), Stages(rear)
        for stages, left in zip(self.stages, self.before, strict=False):
            stages.take_over(left)
        self._ends = track.order.ends
        self._is_subscribed = any(wire.direct for wire in track.lasting)
        spaces = {space for wire in track.lasting for space in wire.spaces}
        heard = np.zeros(SPACES, np.bool_)
        heard[[space for space in Space if space.name.lower() in spaces]] = True
        capacity = min(self.rows, MOST_PENDING + READ)
        merges = any(wire.stage.keys.get("merged_lines") for wire in track.lasting)
        if merges:
            blocks = -(-track.placement.blocks // track.device.chip.sms)
            self._warps = track.order.warps * min(track.order.resident, blocks)
        self.buffer = ReorderBuffer(
            track, self.sites, self.zones, heard, len(self.shapes), capacity, merges
        )
        self._distinct = DistinctRows(track, self.shapes, max(ROWS_PER_BATCH, AT_RANDOM))
        self._units = pack_units(track)

    def take_samples(self, samples: Samples) -> None:
        """Buffer texel rows; the stages in front count them at once."""
        site, zone = locate(samples, self.sites, self.zones)
        front = Stages(tuple(w for w in self.track.front if "texture" in w.spaces))
        front.run(samples.batch, {}, listeners=self.track.lasting)
        for name, flow in front.passed.items():
            moved = replace(flow, row=flow.row + self._samples)
            self._flows.setdefault(name, []).append(moved)
        number = self._samples + np.arange(len(site))
        self._samples += len(site)
        self.buffer.take_samples((samples.block, samples.warp, samples.step), site, zone, number)

    def release(self, settled: int | None) -> None:
        """Count the waves that are complete: all blocks before `settled` are read. None settles
        all.
        """
        ends, buffer = self._ends, self.buffer
        if buffer.many > MOST_PENDING:
            settled = None
        wave_limit = (
            len(ends) if settled is None else int(np.searchsorted(ends, settled, side="right"))
        )
        if not buffer.many or buffer.lowest >= wave_limit:
            return
        sampled, windows = self._pool_samples(), self._windows()
        for order in buffer.order(wave_limit):
            self._count(order, sampled, windows)
        buffer.drop(wave_limit)

    def _count(self, order: Ints, sampled: Mapping[str, Pool], windows: Windows) -> None:
        """Send rows in order, a batch at a time."""
        start = 0
        while start < len(order):
            rows = order[start : start + self._batch_rows]
            start += len(rows)
            waiting = self.buffer.waiting(), self.buffer.widths
            selection = self._distinct.choose(rows, *waiting, self._units.words, windows)
            is_random = selection.fresh * FRESH > len(rows)
            most = max(AT_RANDOM, REQUESTS // max(1, self._distinct.width))
            self._batch_rows = (
                AT_RANDOM if is_random else min(ROWS_PER_BATCH, most, 2 * self._batch_rows)
            )
            flows = flows_of(self._distinct.pools, sampled, selection)
            batch = self._rebuild(rows, selection)
            turns = {TURNS: turn_of(*waiting, rows, self._warps)} if self._warps else {}
            if self.pipeline is None or self._is_subscribed:
                self._send(batch, selection, flows, turns)
            else:
                size = sum(len(pool.kind) for pool in self._distinct.pools.values())
                self.pipeline.submit(size, self._send, batch, selection, flows, turns)

    def close(self) -> None:
        """Count all buffered rows, and add the counts of all stages to the ledger."""
        self.release(None)
        if self.pipeline is not None:
            self.pipeline.finish()
        site, zone, scope, mixed = self.buffer.groups.parts()
        for wire in self.track.lasting if self._sums and self.is_counted else ():
            sums = self._sums[wire.stage.name].T
            sums = np.pad(sums, ((0, len(site) - len(sums)), (0, 0)))
            self.track.ledger.add_sums(wire, site, zone, scope, sums, False)
            if mixed.any():
                some = site[mixed], zone[mixed], scope[mixed], sums[mixed]
                self.track.ledger.add_sums(wire, *some, True)

    def group_owners(self) -> tuple[Ints, Ints]:
        """Return the site and the zone of each group of a batch."""
        site, zone, _, _ = self.buffer.groups.parts()
        return site, zone

    def _windows(self) -> Windows:
        """Return the kind of each group, and where its space is in the memory that caches see."""
        site, *_ = self.buffer.groups.parts()
        space = site % SPACES
        begins = np.where(space == Space.CONST, CONST, 0)
        begins[space == Space.LOCAL] = LOCAL
        bytes_ = self.track.local_bytes
        return Windows(self.sites.kind[site], begins, space == Space.LOCAL, bytes_)

    def _pool_samples(self) -> Mapping[str, Pool]:
        """Return the requests that the stages in front pass on for texels."""
        flows = self._flows.items()
        return {name: make_pool(join_flows(parts), self._samples) for name, parts in flows}

    def _send(
        self,
        batch: Batch,
        selection: OrderedRows,
        flows: Mapping[str, Flow],
        turns: Mapping[str, Ints],
    ) -> None:
        """Send rows through the stateful stages, and add up their counts.

        Stages that other stages feed run in the queue behind. `batch` has the warp accesses, for
        stages that read the trace's rows directly.
        """
        units = {**self._units.split(selection.units), **turns}
        first, rear = self.stages
        group = selection.rows["group"]
        self._add_up(first.run(batch, units, flows, rear.wires, group))
        rear_inputs = batch, units, {**flows, **first.passed}, (), group

        def send_on() -> None:
            self._add_up(rear.run(*rear_inputs))
            self._distinct.forget(selection)

        line = None if self.pipeline is None or self._is_subscribed else self.pipeline.behind
        if line is None:
            send_on()
        else:
            line.submit(sum(map(len, first.passed.values())), send_on)

    def _add_up(self, answers: Answers) -> None:
        """Add up the counts of stages."""
        for name, sums in answers.items():
            before = self._sums.setdefault(name, np.zeros((len(sums), 0), np.int64))
            if (more := sums.shape[1] - before.shape[1]) > 0:
                before = self._sums[name] = np.pad(before, ((0, 0), (0, more)))
            before[:, : sums.shape[1]] += sums

    def _rebuild(self, rows: Ints, selection: OrderedRows) -> Batch:
        """Return the warp accesses of rows, if a stateful stage reads them directly."""
        access_rows = (
            np.flatnonzero(selection.rows["number"] >= 0)
            if self._is_subscribed
            else np.zeros(0, np.int64)
        )
        _, *columns, _, _ = self.buffer.waiting()
        base, pattern, group = (column[rows[access_rows]].astype(np.int64) for column in columns)
        kind = self._windows().kind[group]
        batch = self.shapes.rebuild(self.track.kinds, kind, base, pattern)
        return replace(batch, row=access_rows)


def count_ordered(
    trace: "LaunchTrace",
    tracks: Sequence[DeviceReplay],
    sites: Sites,
    zones: Zones,
    take: Callable[[pa.RecordBatch], None],
    is_warm: bool,
) -> None:
    """Read all rows for the devices with stateful stages, and enter their counts.

    `take` receives each batch of accesses too. If L2 `is_warm`, the launch runs twice, and the
    second run counts.
    """
    shapes = Shapes(trace.pattern_store())
    reaches = Reaches(shapes)
    rows = trace.count("accesses") + trace.count("texels")
    tracks = [track for track in tracks if track.lasting]
    with assembly_line(rows) as line:
        order = partial(Ordering, sites=sites, shapes=shapes, zones=zones, rows=rows, pipeline=line)
        if not is_warm:
            for fraction in read_in_order(trace, [*map(order, tracks)], reaches, take):
                progress.report(fraction)
            return
        first = [order(track, is_counted=False) for track in tracks]
        for fraction in read_in_order(trace, first, reaches):
            progress.report(fraction / 2)
        again = [order(one.track, before=one.stages) for one in first]
        for fraction in read_in_order(trace, again, reaches, take):
            progress.report((1 + fraction) / 2)


def read_in_order(
    trace: "LaunchTrace",
    orderings: Sequence[Ordering],
    reaches: Reaches,
    take: Callable[[pa.RecordBatch], None] = lambda _: None,
) -> Iterator[float]:
    """Send the rows of a launch in order; yield the share that is done, from 0 to 1.

    `take` receives each batch of accesses first.
    """
    lowest = [low for low, high in trace.block_ranges.tolist() if low <= high]
    for samples in read_samples(trace):
        for ordering in orderings:
            ordering.take_samples(samples)
    floors = np.minimum.accumulate([NEVER, *reversed(lowest)])[::-1]
    row_offset, many = 0, max(1, trace.count("accesses"))
    with read_ahead(_read_batches(trace, take), many) as batches:
        for batch, settled in zip(batches, floors[1:].tolist(), strict=True):
            named = reaches.name(loops_of(counting, 0), batch["pattern"].to_numpy())
            for ordering in orderings:
                ordering.buffer.take(batch, named, reaches)
                ordering.release(settled)
            row_offset += batch.num_rows
            if row_offset < many:
                yield row_offset / many
    for ordering in orderings:
        ordering.close()
    yield 1.0


def _read_batches(
    trace: "LaunchTrace", take: Callable[[pa.RecordBatch], None]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of accesses, each after `take` has seen it."""
    for batch in trace.access_batches():
        if batch.num_rows:
            take(batch)
            yield batch

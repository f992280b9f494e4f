"""The evidence that rules read, and the finding that they return.

A rule is a file of `rules/` with one function, `find`. It reads the worst access of each
instruction, as `why` would show it, and the sums of the whole launch, and yields findings: the
line, the evidence, the change and the share of the traffic. Other packages add rules as entry
points of `cutrace.rules`: functions such as `find`.

Gain: the most time that a change can save, from the bounds of the launch before and after.

The longest bound limits a launch until another resource needs longer; saving a resource that is not
the limit gains nothing. A changed access is assumed to cost the minimum for its lanes, in every
cache behind it alike, or the part that its rule states. DRAM still delivers once each byte that
loads touch.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...models.analyses.occupancy import Need, Occupancy, occupancy
from ...models.replay.device.device import Device
from ...models.replay.interface.model import ACCESSES, Bools, Ints
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.rows.lanes import Masks, count_distinct, count_lanes, unpack_masks
from ...models.replay.rows.sites import SPACES
from ...traces.column import integers
from ...traces.reader import LaunchTrace, Trace
from ...traces.schema import Space
from ..counting.bounds import HOST, L1, SHARED
from ..counting.footprint import COLUMN
from ..launch_profile import LaunchProfile
from ..profile import count
from ..time.estimate import Estimate, combine
from ..time.units import REQUESTS_TO_L2, Part
from ..why.picture import draw_groups
from ..why.search import Access
from ..why.sentence import describe_access, give_reason
from .trial import Trials

Key = tuple[int, Space]


@dataclass(slots=True)
class AddressUse:
    """Sums over the rows of an instruction in one space: rows, active lanes, distinct addresses per
    row, and the lanes on the most wanted address of each row (`crowd`).

    `first` is the only address of all lanes and rows, or None if there are several.
    """

    rows: int = 0
    lanes: int = 0
    distinct: int = 0
    crowd: int = 0
    first: int | None = None


def read_address_use(trace: LaunchTrace) -> Mapping[Key, AddressUse]:
    """Measure all accesses of a launch in one pass."""
    uses: dict[Key, AddressUse] = {}
    store = trace.pattern_store()
    for batch in trace.access_batches():
        pc, space, base, pattern = integers(batch, "pc", "space", "base", "pattern")
        patterns, number = np.unique(pattern, return_inverse=True)
        key, group = np.unique(pc * SPACES + space, return_inverse=True)
        shapes = _measure(*store.take(patterns)) if len(patterns) else np.zeros((0, 3), np.int64)
        for index, which in enumerate(key.tolist()):
            rows = np.flatnonzero(group == index)
            at = which // SPACES, Space(which % SPACES)
            _add(uses, at, base[rows], shapes[number[rows]])
    return uses


def _add(uses: dict[Key, AddressUse], at: Key, base: Ints, shapes: Ints) -> None:
    """Add rows with these bases and measures, (n,) and (n, 3)."""
    same = bool((shapes[:, 1] == 1).all() and (base == base[0]).all())
    only = int(base[0]) if same else None
    use = uses.setdefault(at, AddressUse(first=only))
    use.first = only if use.first == only else None
    lanes, distinct, crowd = shapes.sum(axis=0).tolist()
    use.rows += len(base)
    use.lanes += lanes
    use.distinct += distinct
    use.crowd += crowd


def _measure(active: Masks, offsets: NDArray[np.int32]) -> Ints:
    """Return active lanes, distinct addresses, and the crowd of each pattern, (n, 3)."""
    on, values = unpack_masks(active), offsets.astype(np.int64)
    columns = (count_lanes(active), count_distinct(values, on), _crowd(values, on))
    return np.stack(columns, axis=1)


def _crowd(offsets: Ints, active: Bools) -> Ints:
    """Return the number of lanes on the most wanted address of each row, (n,)."""
    same = (offsets[:, :, None] == offsets[:, None, :]) & active[:, None, :]
    return np.asarray((same.sum(axis=2) * active).max(axis=1), np.int64)


LEAST = 0.05
"""Smallest share of its traffic at which an access is reported."""
WORTH = 0.01
"""Smallest part of a launch's least time at which a gain is reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's finding: at an instruction, or (`pc` None) in the launch as a whole.

    `what` is the problem, `evidence` shows it, `change` is the advice, and `proof` is the result of
    a replay with the change, or empty. `share` is the part of the launch's traffic of that kind, 0
    to 1, or None if it has no traffic. `access` is the argument of `why --access`. `saved` is the
    part of the access's cost that the change saves, where that differs from the cost beyond the
    ideal; `only` names the resources that it saves, where that is not all. `least` is the longest
    bound, in nanoseconds, of a replay with the change, if there was one. `gain` is the most
    nanoseconds that the launch gets shorter (`evidence.gain`) if the change is made wherever the
    rule asks for the same one. `estimate` is the estimated time with the change, None without one.
    `effort` ranks the change: 0 for an index, a qualifier or an option, 1 for a few lines, 2 for
    another algorithm. `advise` fills in `gain`, `estimate` (unless a rule knows it), `rule`,
    `place` (FILE:LINE) and the number of `others`, further instructions of the line with the same
    finding.
    """

    what: str
    evidence: str
    change: str
    pc: int | None = None
    share: float | None = None
    access: str = ""
    proof: str = ""
    rule: str = ""
    place: str = ""
    others: int = 0
    saved: float | None = None
    only: tuple[str, ...] = ()
    least: float | None = None
    gain: float = 0.0
    estimate: float | None = None
    effort: int = 1


@dataclass(frozen=True)
class Evidence:
    """The evidence that rules read: one launch on one device.

    `worst` holds the worst access of each instruction and space. `sums` has one row per pc with the
    sums of the models' raw counters. `launches` are the kernel's launches in the `whole` trace.
    """

    profile: LaunchProfile
    trace: LaunchTrace
    device: Device
    worst: Sequence[Access]
    sums: pl.DataFrame
    trials: Trials
    whole: Trace
    options: ReplayOptions
    launches: int = 1

    def replay(self, launch: LaunchTrace, **other: Any) -> tuple[float, float | None]:
        """Return the longest bound and the estimate of a launch in another replay, perhaps with
        other options.
        """
        name = self.profile.device_file or self.profile.device
        options = replace(self.options, device=name, pad={}, align={}, **other)
        (again,) = count(replace(self.whole, launches=(launch,)), options).launches
        return again.bounds[0].ns, again.estimate.ns if again.estimate else None

    def estimate_scaled(self, scales: Mapping[str, float]) -> float | None:
        """Return the estimated time with some of its parts scaled."""
        return estimate_with(self, (), scales=scales)

    def total(self, counter: str) -> int:
        """Return the sum of a raw counter over the launch; 0 if the device lacks it."""
        return self._totals.get(counter) or 0

    def of(self, pc: int, counter: str) -> int:
        """Return the sum of a raw counter at one instruction."""
        row = self._rows.get(pc)
        return self.sums[counter][row] if row is not None and counter in self._totals else 0

    @cached_property
    def _totals(self) -> dict[str, int]:
        names = [name for name in self.sums.columns if name != "pc"]
        return self.sums.select(pl.col(names).sum()).row(0, named=True)

    @cached_property
    def _rows(self) -> dict[int, int]:
        """The row of `sums` for each pc."""
        return {pc: row for row, pc in enumerate(self.sums["pc"].to_list())}

    def fills_device(self) -> bool:
        """Return whether blocks wait for room on an SM; otherwise more room would not help."""
        facts = self.profile.raw.facts
        capacity = (facts.get("resident_blocks") or 0) * (facts.get("sms") or 0)
        return self.profile.launch.blocks > capacity

    def limited_by(self, resource: str) -> Occupancy | None:
        """Return the occupancy of an SM if this resource is the first limit; else None."""
        residency = self.profile.occupancy
        return residency if residency.blocks and residency.limited_by[0] == resource else None

    def fewer_for_a_block(self, field: str, step: int) -> int:
        """Return the most `registers` per thread, or `shared` bytes per block, with which one more
        block fits on an SM; 0 if that does not help.
        """
        facts, launch = self.profile.raw.facts, self.profile.launch
        shared = launch.shared_static + launch.shared_dynamic
        need = Need(launch.threads, facts.get("registers"), shared)
        now: int = getattr(need, field) or 0
        for less in range((now - 1) // step * step, 0, -step):
            blocks = occupancy(self.device.limits, replace(need, **{field: less})).blocks
            if blocks > (facts.get("resident_blocks") or 0):
                return less
        return 0

    @cached_property
    def use(self) -> Mapping[Key, AddressUse]:
        """The address use of each instruction, by pc and space."""
        return read_address_use(self.trace)

    def use_of(self, access: Access) -> AddressUse:
        """Return the address use of an access's instruction."""
        return self.use[access.pc, Space[access.kind.space.upper()]]

    def array_of(self, access: Access) -> str:
        """Return the array that an instruction accesses most; empty if it accesses none."""
        counter = f"{access.kind.prefix}requests"
        if counter not in self._mostly:
            self._mostly[counter] = self._find_mostly(counter)
        name = self._mostly[counter].get(access.pc, "")
        return name if name in self.trials.arrays else ""

    @cached_property
    def _mostly(self) -> dict[str, Mapping[int, str]]:
        """`_find_mostly` by counter of requests."""
        return {}

    def _find_mostly(self, counter: str) -> Mapping[int, str]:
        """Return the array with most requests of each pc; of equals the last by name."""
        counts = self.profile.raw.counts
        if counter not in counts.columns:
            return {}
        rows = counts.filter(pl.col("array") != "", pl.col(counter) > 0)
        by_array = rows.group_by("pc", "array").agg(pl.col(counter).sum()).sort(counter, "array")
        return dict(by_array.select("pc", "array").rows())

    def is_written(self, name: str) -> bool:
        """Return whether the launch stores to an array or updates it atomically."""
        return name in self._written

    @cached_property
    def _written(self) -> frozenset[str]:
        counts = self.profile.raw.counts
        names = [f"global_{what}_requests" for what in ("store", "atomic", "reduction")]
        there = [pl.col(each) > 0 for each in names if each in counts.columns]
        rows = counts.filter(pl.any_horizontal(there)) if there else counts.clear()
        return frozenset(rows["array"].to_list())

    def share(self, access: Access, what: str) -> float:
        """Return an access's share of its space's total of `bytes_moved` or `passes`."""
        space = access.kind.space
        total = sum(self.total(f"{space}_{act}_{what}") for act in ACCESSES[space])
        return self.of(access.pc, access.kind.prefix + what) / total if total else 0.0

    def describe(self, access: Access) -> str:
        """Return the sentence and the reason of `why`."""
        groups = draw_groups(access)
        parts = (f(access, groups, self.device.capability) for f in (describe_access, give_reason))
        return "; ".join(part for part in parts if part)


WHY = "cutrace why TRACE"
"""Command that explains an access when the trace's name is unknown."""


PART_COUNTERS: Mapping[str, Sequence[str]] = {
    "DRAM": ("dram_bytes_read", "dram_bytes_written"),
    **{resource: (name,) for resource, name in HOST.items()},
    "L2": ("l2_reads", "l2_writes"),
    REQUESTS_TO_L2: ("l2_reads", "l2_writes"),
    "issue slots": ("instructions",),
    "ADU pipe": ("instructions",),
}
"""Part of an estimate to the raw counters that it grows with."""
L1_PART, LATENCY = "L1 and shared memory", "latency"
LINE = 128
"""Bytes of global memory that L1 hands out in a cycle, as it does a wavefront of shared memory."""
STAYS = 0.1
"""Part of a load's latency that remains if a tile or a register has the value."""
ON_MEMORY = frozenset({"memory", "L2", "L1"})
COUNTERS: Mapping[str, Sequence[str]] = {
    "DRAM": ("dram_bytes_read", "dram_bytes_written"),
    **{resource: (name,) for resource, name in HOST.items()},
    "L2": ("l2_reads", "l2_writes"),
    "L1 data": [f"{name}_bytes_moved" for name in L1],
    "shared memory": [f"{name}_passes" for name in SHARED],
    "issue slots": ("instructions",),
    "constant cache": ("const_load_conflicts",),
}
"""Resource to the raw counters from which an access's part follows."""
FAR, SLOTS = ("DRAM", *HOST), "issue slots"
"""Issue slots count as saved only where a rule says that instructions disappear."""
IDEAL = (("transactions", "ideal_transactions"), ("passes", "ideal_passes"))


class Counted(Protocol):
    """The part of the evidence that gains need: a launch's counts and its worst accesses."""

    @property
    def profile(self) -> LaunchProfile:
        """The launch's counters and bounds."""

    @property
    def worst(self) -> Sequence[Access]:
        """The worst access of each instruction."""

    def total(self, counter: str) -> int:
        """Return the sum of a raw counter over the launch."""

    def of(self, pc: int, counter: str) -> int:
        """Return the sum of a raw counter at one instruction."""


def find_gain(
    evidence: Counted, saved: Iterable[tuple[int, float | None]], only: Collection[str] = ()
) -> float:
    """Return the most nanoseconds that a change saves, by the bounds of the launch.

    `saved` lists instructions with the part of the cost that each saves, 0 to 1; None means
    the cost beyond the ideal. If `only` names resources, the others save nothing.
    """
    bounds, saved = evidence.profile.bounds, list(saved)
    if not bounds:
        return 0.0
    parts = [(pc, _waste(evidence, pc) if part is None else part) for pc, part in saved]
    left_out = [(pc, part) for pc, part in saved if part is not None]
    after = 0.0
    for bound in bounds:
        resource = bound.resource if not only or bound.resource in only else ""
        less = _fraction(evidence, resource, left_out if resource == SLOTS else parts)
        if less and resource in FAR and bound.ns > after:
            less = min(less, max(0.0, 1 - _least(evidence, resource) / bound.amount))
        after = max(after, bound.ns * (1 - less))
    return bounds[0].ns - after


def estimate_with(
    evidence: Counted,
    saved: Iterable[tuple[int, float | None]],
    only: Collection[str] = (),
    scales: Mapping[str, float] = {},
) -> float | None:
    """Return the estimated time with a change, in nanoseconds; None without an estimate.

    `saved` and `only` are those of `find_gain`. The parts of the estimate shrink with the counters
    that they grow with, or by the factors `scales`; they combine as before. Loads that disappear no
    longer wait for memory.
    """
    now = evidence.profile.estimate
    if not now or not now.parts:
        return None
    saved = list(saved)
    parts = [(pc, _waste(evidence, pc) if part is None else part) for pc, part in saved]
    gone = [(pc, part) for pc, part in saved if part is not None]
    waits = sum(part * _waiting(now, pc) for pc, part in gone) * (1 - STAYS)
    after = []
    for each in now.parts:
        less = 1 - scales.get(each.what, 1.0)
        if each.what == LATENCY and not only:
            less = max(less, waits)
        elif each.what == L1_PART:
            less = max(less, _l1_share(evidence, parts, only))
        elif each.what in only and each.what not in PART_COUNTERS:
            less = max(less, max((part for _, part in gone), default=0.0))
        elif each.what in PART_COUNTERS and (not only or each.what in only):
            its = gone if each.what in SLOT_PARTS else parts
            less = max(less, _share_of(evidence, PART_COUNTERS[each.what], its))
            if less and each.what in FAR:
                moved = sum(evidence.total(name) for name in PART_COUNTERS[each.what])
                less = min(less, max(0.0, 1 - _least(evidence, each.what) / moved))
        after.append(Part(each.what, each.ns * (1 - less)))
    return now.ns - combine(now.parts, now.batches) + combine(after, now.batches)


SLOT_PARTS = ("issue slots", "ADU pipe")


def _waiting(now: Estimate, pc: int) -> float:
    """Return the share of a warp's time that it waits for the loads of a pc."""
    return sum(share for (at, why), share in now.at.items() if at == pc and why in ON_MEMORY)


def _l1_share(
    evidence: Counted, parts: Sequence[tuple[int, float]], only: Collection[str]
) -> float:
    """Return the saved part of the cycles of L1 and shared memory, 0 to 1."""
    weights = [(name, 1.0, "shared memory") for name in COUNTERS["shared memory"]]
    weights += [(name, 1 / LINE, "L1 data") for name in COUNTERS["L1 data"]]
    whole = sum(evidence.total(name) * weight for name, weight, _ in weights)
    less = sum(
        part * evidence.of(pc, name) * weight
        for pc, part in parts
        for name, weight, resource in weights
        if not only or resource in only
    )
    return less / whole if whole else 0.0


def _least(evidence: Counted, resource: str) -> int:
    """Return the bytes of a memory that no order of lanes saves: each is loaded and stored once.

    L2 may still hold stored bytes at the end, so no more of them than are written now.
    """
    least = 0
    for counter in COUNTERS[resource]:
        access = "load" if counter.endswith("_read") else "store"
        distinct = _footprint(evidence.profile, (f"global_{access}_requests", counter))
        least += min(distinct, evidence.total(counter))
    return least


def _footprint(profile: LaunchProfile, columns: Sequence[str]) -> int:
    """Return the distinct bytes of the arrays that have all of some counts."""
    counts = profile.raw.counts
    if not profile.footprint or not {*columns} <= {*counts.columns}:
        return 0
    sums = counts.group_by("array").agg(pl.col(columns).sum())
    arrays = sums.filter(pl.all_horizontal(pl.col(columns) > 0))["array"]
    return int(profile.footprint().filter(pl.col("array").is_in(arrays.implode()))[COLUMN].sum())


def _fraction(evidence: Counted, resource: str, parts: Sequence[tuple[int, float]]) -> float:
    """Return the saved part of a resource, 0 to 1."""
    return _share_of(evidence, COUNTERS.get(resource, ()), parts)


def _share_of(evidence: Counted, names: Sequence[str], parts: Sequence[tuple[int, float]]) -> float:
    """Return the saved part of some counters, 0 to 1."""
    total = sum(evidence.total(name) for name in names)
    less = sum(part * evidence.of(pc, name) for pc, part in parts for name in names)
    return less / total if total else 0.0


def _waste(evidence: Counted, pc: int) -> float:
    """Return the part of the cost of an instruction's accesses beyond the ideal, 0 to 1."""
    prefixes = [access.kind.prefix for access in evidence.worst if access.pc == pc]
    for cost, ideal in IDEAL:
        paid, needed = (
            sum(evidence.of(pc, prefix + name) for prefix in prefixes) for name in (cost, ideal)
        )
        if paid:
            return max(0.0, 1 - max(needed / paid, _requested_share(evidence, pc, prefixes)))
    return 0.0


def _requested_share(evidence: Counted, pc: int, prefixes: Sequence[str]) -> float:
    """Return the requested part of the moved bytes; transactions may differ in size."""
    request_bytes, moved = (
        sum(evidence.of(pc, prefix + name) for prefix in prefixes)
        for name in ("bytes_asked", "bytes_moved")
    )
    return request_bytes / moved if moved else 0.0

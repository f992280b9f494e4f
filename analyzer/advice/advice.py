"""Advice: what to change in a kernel, with the line, the evidence and the share of the traffic.

A rule is a file of `rules/` with one function, `find`. It sees the worst access of each instruction
as `why` would show it, and the sums of the whole launch, and tells what it finds. Other packages
bring theirs as entry points of `cutrace.rules`: functions such as `find`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import polars as pl

from ...extension import RULES, blaming, extension_names, load_extension
from ...lazy_dataclass import dataclass
from ...models.analyses.occupancy import Need, Occupancy, occupancy
from ...models.replay.device.device import Device, load_device
from ...models.replay.options import ReplayOptions
from ...models.replay.seam import ACCESSES
from ...traces.reader import LaunchTrace, Trace
from ...traces.schema import Space
from .. import rules
from ..counting.bounds import time_text
from ..counting.idle import NOT_KEPT, NOTHING, did_nothing, kept_nothing
from ..launch_profile import LaunchProfile
from ..profile import Profile, count_supposed
from ..text.launch_text import ROOM, launch_text
from ..text.sentence import wrapped
from ..why.picture import draw_groups
from ..why.search import Access, Searcher
from ..why.sentence import give_reason, say
from .address_use import AddressUse, Key, read_address_use
from .gain import find_gain
from .repeated import digest
from .trial import Rows, Trials

LEAST = 0.05
"""The share of its traffic from which on an access is worth a word."""
WORTH = 0.01
"""The part of a launch's least time from which on a gain is told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule: at an instruction, or (`pc` None) in the launch as a whole.

    `what` is wrong, `evidence` shows it, `change` is the advice, and `proof` what a replay with the
    change gave, or empty; `share` is the part of the launch's traffic of that kind, 0 to 1, None
    where it has no part in any. `access` is what `why --access` takes; `saved` the part of the
    access's cost that the change saves, where that is not what lies beyond the ideal, and of the
    resources `only`, where it is not all; `least` is the longest bound, in nanoseconds, of a replay
    with the change, if there was one. `gain` are
    the nanoseconds that the launch is shorter at most (`advice.gain`), if the change is made
    wherever the rule asks for the same one; it, `rule`, `place`
    (FILE:LINE) and the number of `others`, further instructions of the line with the same, are
    filled in by `advise`.
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


@dataclass(frozen=True)
class Evidence:
    """The evidence that rules read: one launch on one device.

    `worst` holds the worst access of each instruction and space, `sums` a row a pc with the sums of
    the models' raw counters; `launches` are those of the kernel in the `whole` trace.
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

    def least_ns(self, launch: LaunchTrace, **other: Any) -> float:
        """The longest bound of a launch that is replayed once more, perhaps by other options."""
        name = self.profile.device_file or self.profile.device
        asked = replace(self.options, device=name, pad={}, align={}, **other)
        (again,) = count_supposed(replace(self.whole, launches=(launch,)), asked).launches
        return again.bounds[0].ns

    def total(self, counter: str) -> int:
        """The sum of a raw counter over the launch; 0 where the device does not have it."""
        return self._totals.get(counter) or 0

    def of(self, pc: int, counter: str) -> int:
        """The sum of a raw counter at one instruction."""
        row = self._rows.get(pc)
        return self.sums[counter][row] if row is not None and counter in self._totals else 0

    @cached_property
    def _totals(self) -> dict[str, int]:
        names = [name for name in self.sums.columns if name != "pc"]
        return self.sums.select(pl.col(names).sum()).row(0, named=True)

    @cached_property
    def _rows(self) -> dict[int, int]:
        """The row of each pc."""
        return {pc: row for row, pc in enumerate(self.sums["pc"].to_list())}

    def fills_device(self) -> bool:
        """Whether blocks wait for room on an SM: else more room would be no use."""
        facts = self.profile.raw.facts
        room = (facts.get("resident_blocks") or 0) * (facts.get("sms") or 0)
        return self.profile.launch.blocks > room

    def limited_by(self, resource: str) -> Occupancy | None:
        """The occupancy of an SM if this resource is the first that limits it; else None."""
        held = self.profile.occupancy
        return held if held.blocks and held.limited_by[0] == resource else None

    def fewer_for_a_block(self, field: str, step: int) -> int:
        """The most of `registers` a thread, or `shared` bytes a block, with which an SM holds a
        block more; 0 where that helps nothing."""
        facts, launch = self.profile.raw.facts, self.profile.launch
        shared = launch.shared_static + launch.shared_dynamic
        need = Need(launch.threads, facts.get("registers"), shared)
        now: int = getattr(need, field) or 0
        for less in range((now - 1) // step * step, 0, -step):
            held = occupancy(self.device.limits, replace(need, **{field: less})).blocks
            if held > (facts.get("resident_blocks") or 0):
                return less
        return 0

    @cached_property
    def use(self) -> Mapping[Key, AddressUse]:
        """How many places the lanes of each instruction want, by pc and space."""
        return read_address_use(self.trace)

    def use_of(self, access: Access) -> AddressUse:
        """How many places the lanes of an access's instruction want."""
        return self.use[access.pc, Space[access.kind.space.upper()]]

    def array_of(self, access: Access) -> str:
        """The array that an instruction goes to, mostly; empty where it goes to none."""
        counter = f"{access.kind.prefix}requests"
        if counter not in self._mostly:
            self._mostly[counter] = self._find_mostly(counter)
        name = self._mostly[counter].get(access.pc, "")
        return name if name in self.trials.arrays else ""

    @cached_property
    def _mostly(self) -> dict[str, Mapping[int, str]]:
        """By a counter of requests, what `_find_mostly` found."""
        return {}

    def _find_mostly(self, counter: str) -> Mapping[int, str]:
        """The array that most requests of each pc go to, the last by name of several."""
        counts = self.profile.raw.counts
        if counter not in counts.columns:
            return {}
        rows = counts.filter(pl.col("array") != "", pl.col(counter) > 0)
        by_array = rows.group_by("pc", "array").agg(pl.col(counter).sum()).sort(counter, "array")
        return dict(by_array.select("pc", "array").rows())

    def is_written(self, name: str) -> bool:
        """Whether the launch stores to an array, or does atomics on it."""
        return name in self._written

    @cached_property
    def _written(self) -> frozenset[str]:
        """The arrays that are written."""
        counts = self.profile.raw.counts
        names = [f"global_{what}_requests" for what in ("store", "atomic", "reduction")]
        there = [pl.col(each) > 0 for each in names if each in counts.columns]
        rows = counts.filter(pl.any_horizontal(there)) if there else counts.clear()
        return frozenset(rows["array"].to_list())

    def share(self, access: Access, what: str) -> float:
        """An access's part of all that its space counts: `bytes_moved`, `passes`."""
        space = access.kind.space
        total = sum(self.total(f"{space}_{act}_{what}") for act in ACCESSES[space])
        return self.of(access.pc, access.kind.prefix + what) / total if total else 0.0

    def describe(self, access: Access) -> str:
        """The sentence and the reason of `why`."""
        groups = draw_groups(access)
        parts = (f(access, groups, self.device.capability) for f in (say, give_reason))
        return "; ".join(part for part in parts if part)


def rule_names() -> tuple[str, ...]:
    """The names of all rules, those of other packages last."""
    own = sorted(module.name for module in iter_modules(rules.__path__))
    return (*own, *extension_names(RULES))


def _find(name: str, evidence: Evidence) -> Iterable[Finding]:
    """Ask one of `rule_names`."""
    if name not in extension_names(RULES):
        found: Iterable[Finding] = import_module(f"{rules.__name__}.{name}").find(evidence)
        return found
    with blaming(f"rule {name}"):
        return [*load_extension(RULES, name)(evidence)]


def advise(
    trace: Trace,
    profile: Profile,
    options: ReplayOptions = ReplayOptions(),  # noqa: B008
) -> list[tuple[LaunchProfile, list[Finding]]]:
    """Ask every rule about each launch on each device that can run it, what gains most first.

    Instructions of one line in which a rule finds the same are one finding, the worst of them, with
    the share of all.
    """
    devices: dict[str, Device] = {}
    known: dict[tuple[str, bytes], list[Finding]] = {}
    found: list[tuple[LaunchProfile, list[Finding]]] = []
    read: Rows | None = None
    times = Counter((launch.device, launch.launch.kernel) for launch in profile.launches)
    for launch in profile.launches:
        if launch.refusal:
            continue
        name = launch.device_file or launch.device
        if name not in devices:
            devices[name] = load_device(name, options.set)
        opened = trace.launches[launch.number]
        read = read if read and read.trace is opened else Rows(opened)
        same = name, digest(opened)
        if same not in known:
            often = times[launch.device, launch.launch.kernel]
            asked = _ask(trace, launch, Trials(read, devices[name], options.dlcm), options, often)
            known[same] = sorted(asked, key=_order)
        found.append((launch, [_move(finding, launch.number) for finding in known[same]]))
    return found


def _move(finding: Finding, number: int) -> Finding:
    """The same in another launch, with which the names of accesses begin."""
    rest = finding.access.partition(".")[2]
    return replace(finding, access=f"{number}.{rest}") if rest else finding


def _order(finding: Finding) -> tuple[float, float]:
    """The most time to gain first, then the larger share."""
    return -finding.gain, -(finding.share or 0)


def _ask(
    trace: Trace, launch: LaunchProfile, trials: Trials, options: ReplayOptions, launches: int
) -> Iterator[Finding]:
    opened, device = trials.trace, trials.device
    worst = Searcher(opened, device, options.dlcm).worst(None)
    numbers = [c for c, t in launch.raw.counts.schema.items() if t == pl.Int64]
    sums = launch.raw.counts.group_by("pc").agg(pl.col(numbers).sum()).sort("pc")
    evidence = Evidence(launch, opened, device, worst, sums, trials, trace, options, launches)
    places = opened.instructions().select(["file", "line"]).to_pylist()
    found: dict[tuple[str, str], list[Finding]] = {}
    for name in rule_names():
        for finding in _find(name, evidence):
            at = places[finding.pc] if finding.pc is not None else {"line": 0}
            place = f"{at['file']}:{at['line']}" if at["line"] else ""
            where = place or ("" if finding.pc is None else f"pc {finding.pc}")
            named = replace(finding, rule=name, place=where)
            found.setdefault((name, where), []).append(named)
    every = [finding for alike in found.values() for finding in alike]
    for alike in found.values():
        shares = [finding.share for finding in alike if finding.share is not None]
        first = max(alike, key=lambda finding: finding.share or 0)
        if not shares or sum(shares) >= LEAST:
            saved = [
                (finding.pc, finding.saved)
                for finding in every
                if (finding.rule, finding.change) == (first.rule, first.change)
                and finding.pc is not None
            ]
            yield replace(
                first,
                share=sum(shares) if shares else None,
                others=len(alike) - 1,
                gain=find_gain(evidence, saved, first.only)
                if first.least is None
                else launch.bounds[0].ns - first.least,
            )


WHY = "cutrace why TRACE"
"""What explains an access, where nobody knows what the trace is called."""


def render_advice(
    found: Sequence[tuple[LaunchProfile, Sequence[Finding]]],
    width: int | None = None,
    first: str = "",
    last: str = "",
    why: str = WHY,
) -> str:
    """A paragraph a launch and device, an item a finding; `why` is what explains an access."""
    lines = [first, ""] if first else []
    for launch, findings, times in _count_repeats(found):
        again = f"  ({times} launches, the first is {launch.number})" if times > 1 else ""
        lines += wrapped(f"{launch.device}  {launch_text(launch.launch, ROOM)}{again}", width)
        if not findings:
            lines += wrapped(f"nothing to advise{_idle(launch)}", width, "  ")
        for alike in _gather(findings):
            lines += _render_alike(alike, launch, width, why)
        lines.append("")
    return "\n".join((*lines, f"next: {last}" if last else "")).rstrip("\n") + "\n"


def _idle(launch: LaunchProfile) -> str:
    """Why there may be nothing to advise: the launch did nothing, or keeps nothing of it."""
    counts = launch.raw.counts
    sums = {name: int(counts[name].sum()) for name in counts.columns if name.endswith("_requests")}
    if not launch.launch.kept.is_whole or not kept_nothing(sums):
        return ""
    return f": {NOTHING if did_nothing(sums) else NOT_KEPT}"


def _count_repeats(
    found: Sequence[tuple[LaunchProfile, Sequence[Finding]]],
) -> Sequence[tuple[LaunchProfile, Sequence[Finding], int]]:
    """Launches of which the same is to be said, once each, and how many they are."""
    said: dict[tuple[object, ...], list[tuple[LaunchProfile, Sequence[Finding]]]] = {}
    for launch, findings in found:
        what = tuple(replace(finding, access="") for finding in findings)
        said.setdefault((launch.device, launch_text(launch.launch), what), []).append(
            (launch, findings)
        )
    return [(*alike[0], len(alike)) for alike in said.values()]


def _gather(findings: Sequence[Finding]) -> Sequence[Sequence[Finding]]:
    """Findings of which the same is to be said, line by line, in the order of the first of each."""
    found: dict[tuple[str, str, str, str], list[Finding]] = {}
    for each in findings:
        found.setdefault((each.rule, each.evidence, each.change, each.proof), []).append(each)
    return [*found.values()]


def _render_alike(
    alike: Sequence[Finding], launch: LaunchProfile, width: int | None, why: str
) -> Iterator[str]:
    for finding in alike:
        yield from wrapped(f"- {_head(finding)}", width)
    first = alike[0]
    seen = f" ({why} --access {first.access})" if first.access else ""
    yield from wrapped(f"seen: {first.evidence}{seen}", width, "  ")
    yield from wrapped(f"change: {first.change}", width, "  ")
    if first.proof:
        yield from wrapped(f"tried: {first.proof}", width, "  ")
    if gain := gain_text(max(alike, key=lambda finding: finding.gain), launch):
        yield from wrapped(f"gain: {gain}, by the bounds", width, "  ")


def gain_text(finding: Finding, launch: LaunchProfile) -> str:
    """`up to 30 us of 34.3 us`; empty where the finding does not limit the launch."""
    if not launch.bounds or finding.gain < WORTH * launch.bounds[0].ns:
        return ""
    return f"up to {time_text(finding.gain)} of {time_text(launch.bounds[0].ns)}"


def _head(finding: Finding) -> str:
    place = f"{finding.place}: " if finding.place else ""
    more = f"; the same for {_accesses(finding.others)}" if finding.others else ""
    part = "" if finding.share is None else f", {100 * finding.share:.0f} % of its traffic"
    return f"{place}{finding.what}{more} ({finding.rule}{part})"


def _accesses(others: int) -> str:
    return "another access of this line" if others == 1 else f"{others} other accesses of this line"

"""Gather the page's content from traces and profiles, within the bounds of its size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from ...base.dataclass import dataclass
from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from ...traces.reader import Trace
from ..advice.advise import advise
from ..comparison.comparison import MOST as MOST_VARIANTS
from ..comparison.comparison import align_lines, compare_profiles, split_kernels
from ..evidence.evidence import Finding
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..report.document import Cell
from ..text.launch_text import ROOM, host_text, launch_text, ranges_text
from .chart_svg import draw_charts
from .device_part import PartMaker
from .figures import cell, compare_table, full_tables, glance, moved_bytes
from .source import MEASURES, measure
from .value import (
    Bounds,
    Comparison,
    LaunchPart,
    Listed,
    Report,
    SideBySide,
    TwinLine,
    TwinRow,
    Variant,
)

EXCESS = (
    *((f"global_{act}_transactions", f"global_{act}_ideal_transactions") for act in
      ("load", "store", "atomic", "reduction")),
    ("const_load_passes", "const_load_ideal_passes"),
)  # fmt: skip
"""Raw counters, each with the part of it that the same accesses need at least."""
CONFLICTS = tuple(f"shared_{act}_conflicts" for act in ("load", "store", "atomic", "reduction"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The launches shown in full; `speaks` maps every launch to the one that represents it.

    `family` holds the number of launches of the same kernel and shape, for the worst of them;
    `first` is the worst launch of the costliest family, None if nothing was launched.
    """

    first: int | None
    shown: tuple[int, ...]
    speaks: Mapping[int, int]
    family: Mapping[int, int]


def choose_devices(profile: Profile, capacity: int) -> tuple[str, ...]:
    """Return the devices shown in full: all if they fit, else one per generation.

    A generation is represented by its newest board, or its architecture (sm_NN) if it has none; the
    default device comes first, then the newest of all.
    """
    capabilities = {p.device: p.capability for p in profile.launches}
    if len(capabilities) <= capacity:
        return tuple(capabilities)
    ordered = sorted(capabilities, key=lambda name: (name[:3] != "sm_", capabilities[name]))
    newest = {capabilities[name][0]: name for name in ordered}
    if DEFAULT_DEVICE in capabilities:
        newest[capabilities[DEFAULT_DEVICE][0]] = DEFAULT_DEVICE
    ordered = [newest[generation] for generation in sorted(newest, reverse=True)]
    ordered.sort(key=lambda name: name != DEFAULT_DEVICE)
    return tuple(ordered[:capacity])


def choose(profile: Profile, capacity: int) -> Choice:
    """Choose at most `capacity` launches: the worst of each family, then the worst of the
    others."""
    families: dict[tuple[object, ...], list[int]] = {}
    cost = _costs(profile)
    for number in profile.numbers:
        launch = profile.of(number)[0].launch
        key = (launch.kernel, launch.grid, launch.block, launch.shared_dynamic)
        families.setdefault(key, []).append(number)
    by_cost = [sorted(each, key=lambda n: (*map(_minus, cost[n]), n)) for each in families.values()]
    by_cost.sort(key=lambda each: -sum(cost[number][1] for number in each))
    top_families = by_cost[:capacity]
    worst = [each[0] for each in top_families]
    # A kernel may take another path for other scalar arguments: show the worst launch of each such
    # set, as far as there is room.
    others = [number for each in top_families for number in _with_other_scalars(profile, each)]
    others.sort(key=lambda number: (*map(_minus, cost[number]), number))
    shown = sorted((*worst, *others[: capacity - len(worst)]))
    speaks = {
        number: number if number in shown else _spokesman(profile, number, each, shown)
        for each in top_families
        for number in each
    }
    return Choice(
        next(iter(worst), None), tuple(shown), speaks, {each[0]: len(each) for each in top_families}
    )


def count_excess(launch: LaunchProfile) -> int:
    """Return the transactions and passes that another mapping of lanes to addresses would save."""
    counts = launch.raw.counts
    names = {name for pair in EXCESS for name in pair} | {*CONFLICTS}
    columns = [name for name in counts.columns if name in names]
    if not columns or not counts.height:
        return 0
    sums = counts.select(pl.col(columns).sum()).row(0, named=True)
    beyond = sum((sums.get(had) or 0) - (sums.get(least) or 0) for had, least in EXCESS)
    return beyond + sum(sums.get(name) or 0 for name in CONFLICTS)


def _costs(profile: Profile) -> Mapping[int, tuple[int, int]]:
    """Return every launch's cost; it is computed once for identical launches."""
    costs: dict[int, tuple[int, int]] = {}
    for number in profile.numbers:
        on = profile.of(number)
        same = on[0].origin.number
        costs[number] = costs[same] if same in costs else _cost(on)
    return costs


def _cost(on: Sequence[LaunchProfile]) -> tuple[int, int]:
    """Return a launch's excess and bytes on the device with the highest cost."""
    running = [(count_excess(p), moved_bytes(p)) for p in on if not p.refusal]
    return max(running, default=(0, 0))


def _minus(value: int) -> int:
    return -value


def _scalars(profile: Profile, number: int) -> tuple[object, ...]:
    """Return the scalar arguments."""
    arguments = profile.of(number)[0].launch.arguments
    return tuple((a.name, a.value) for a in arguments if a.name != a.value)


def _with_other_scalars(profile: Profile, family: Sequence[int]) -> list[int]:
    """Return the worst launch for each set of scalar arguments, except the set of the family's
    worst.
    """
    first: dict[tuple[object, ...], int] = {}
    for number in family:
        first.setdefault(_scalars(profile, number), number)
    return [number for number in first.values() if number != family[0]]


def _spokesman(profile: Profile, number: int, family: Sequence[int], shown: Sequence[int]) -> int:
    """Return the shown launch with the same scalars, else the family's worst."""
    mine = _scalars(profile, number)
    twins = (n for n in family if n in shown and _scalars(profile, n) == mine)
    return next(twins, family[0])


NAMED = 3
"""Maximum number of kernels in the title."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A trace to report on, with its name and profile; `whole` includes devices shown only in
    charts.
    """

    name: str
    trace: Trace
    profile: Profile
    whole: Profile | None = None

    def narrowed(self, capacity: int) -> "Subject":
        """Return the subject with at most `capacity` devices in its profile."""
        devices = choose_devices(self.profile, capacity)
        by_place = {(p.number, p.device): p for p in self.profile.launches}
        launches = tuple(by_place[n, device] for n in self.profile.numbers for device in devices)
        return replace(self, profile=replace(self.profile, launches=launches), whole=self.profile)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers content within bounds; `options` are those of the replay."""

    options: ReplayOptions
    bounds: Bounds

    def gather(self, subjects: Sequence[Subject], command: str) -> Report:
        """Return the content of the whole page."""
        subjects = [subject.narrowed(self.bounds.devices) for subject in subjects]
        choices = [choose(subject.profile, self.bounds.launches) for subject in subjects]
        parts = sum(
            not launch.refusal
            for subject, choice in zip(subjects, choices, strict=True)
            for number in choice.shown
            for launch in subject.profile.of(number)
        )
        make = PartMaker(self.options, self.bounds.share(parts))
        variants = tuple(
            self._variant(index, subject, choice, make)
            for index, (subject, choice) in enumerate(zip(subjects, choices, strict=True))
        )
        comparisons, remarks = self._compare(subjects)
        twins = self._twins(subjects) if comparisons and len(subjects) > 1 else ()
        kernels = dict.fromkeys(
            subject.profile.of(number)[0].launch.name
            for subject, choice in zip(subjects, choices, strict=True)
            for number in choice.shown
        )
        devices = {p.device: p.device_name for s in subjects for p in s.profile.launches}
        return Report(
            _title([*kernels]),
            tuple(devices.items()),
            variants,
            comparisons,
            remarks,
            command,
            twins,
        )

    def _variant(self, index: int, subject: Subject, choice: Choice, make: PartMaker) -> Variant:
        profile = subject.profile
        shown = tuple(p for p in profile.launches if p.number in choice.shown)
        advised = advise(subject.trace, replace(profile, launches=shown), self.options)
        findings = {(p.number, p.device): finding for p, finding in advised}
        launches = tuple(
            _launch(f"v{index}-{number}", subject, number, choice, findings, make)
            for number in choice.shown
        )
        keys = {launch.number: launch.key for launch in launches}
        listed = tuple(self._list(profile, choice, keys))
        return Variant(subject.name, launches, listed, len(profile.numbers) - len(listed))

    def _list(self, profile: Profile, choice: Choice, keys: Mapping[int, str]) -> Iterator[Listed]:
        """Yield a line per launch, for the first launches."""
        numbers = profile.numbers[: self.bounds.listed]
        moved: dict[tuple[int, str], int] = {}
        for p in profile.launches:
            same = p.origin.number, p.device
            moved[p.number, p.device] = moved[same] if same in moved else moved_bytes(p)
        most = max(moved.values(), default=0) or 1
        names = {p.launch.name for p in profile.launches}
        for number in numbers:
            on = profile.of(number)
            cells = (
                Cell(None, p.refusal)
                if p.refusal
                else _moved_cell(p, moved[number, p.device], most)
                for p in on
            )
            speaker = choice.speaks.get(number, number)
            key, instead = keys.get(speaker, ""), speaker if speaker != number else None
            launch = on[0].launch
            heading = launch_text(launch, ROOM, names)
            yield Listed(number, heading, launch.name, tuple(cells), key, instead)

    def _compare(
        self, subjects: Sequence[Subject]
    ) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
        """Compare variants side by side, if several launch kernels; of one, its kernels."""
        if not all(s.profile.launches for s in subjects):
            return (), ()
        profiles = {s.name: s.profile for s in subjects}
        if len(profiles) == 1:
            ((name, profile),) = profiles.items()
            if not 1 < len({p.launch.name for p in profile.launches}) <= MOST_VARIANTS:
                return (), ()
            profiles = split_kernels(profile, name)
        comparison = compare_profiles(profiles)
        shown = comparison.tables[: self.bounds.launches * len(subjects[0].profile.devices)]
        tables = tuple(table for t in shown if (table := compare_table(comparison, t)))
        if len(subjects) == 1:  # kernels of one program do different work
            tables = tuple(replace(table, verdict="") for table in tables)
        remarks = list(comparison.notes)
        if more := len(comparison.tables) - len(shown):
            remarks.append(f"{more} more comparisons are left out; `cutrace compare` prints all")
        return tables, tuple(remarks)

    def _twins(self, subjects: Sequence[Subject]) -> tuple[SideBySide, ...]:
        """Pair the source of the first variant with each other one, as far as rows are
        available."""
        first, *others = subjects[: 1 + self.bounds.rows // MOST]
        drawn = (
            draw_twins((first.name, other.name), (first.profile, other.profile), device)
            for device in first.profile.devices
            for other in others
        )
        return tuple(twins for twins in drawn if twins)


def _moved_cell(launch: LaunchProfile, moved: int, most: int) -> Cell:
    """Return a cell of bytes moved and the possible saving."""
    excess = count_excess(launch)
    return replace(cell(moved, moved / most), note=f"{excess:,} excess" if excess else "")


def _title(kernels: Sequence[str]) -> str:
    """Return the title: the first kernels' names."""
    more = f" and {len(kernels) - NAMED} more" if len(kernels) > NAMED else ""
    return ", ".join(kernels[:NAMED]) + more or "no launches"


def _launch(
    key: str,
    subject: Subject,
    number: int,
    choice: Choice,
    findings: Mapping[tuple[int, str], Sequence[Finding]],
    make: PartMaker,
) -> LaunchPart:
    """Return a launch in full, on every device."""
    on = subject.profile.of(number)
    everywhere = (subject.whole or subject.profile).of(number)
    launch = on[0].launch
    tables, zeros = full_tables(on)
    compilers = (f"{c.name} {c.version} {c.target}" for c in subject.trace.manifest.compilers)
    return LaunchPart(
        key=key,
        variant=subject.name,
        number=number,
        heading=launch_text(launch, ROOM, {p.launch.name for p in subject.profile.launches}),
        signature=launch.signature or launch.kernel,
        facts=(
            ("grid", " x ".join(map(str, launch.grid))),
            ("block", " x ".join(map(str, launch.block))),
            *((("cluster", " x ".join(map(str, launch.cluster))),) if launch.cluster else ()),
            ("threads", f"{launch.blocks * launch.threads:,}"),
            ("shared memory", f"{launch.shared_static + launch.shared_dynamic:,} bytes a block"),
            *((("in range", ranges),) if (ranges := ranges_text(launch)) else ()),
            *(("compiled by", compiler) for compiler in compilers),
            *((("not counted", host),) if (host := host_text(subject.trace.manifest)) else ()),
        ),
        equal_launches=choice.family.get(number, 1),
        is_first=key == f"v0-{choice.first}",
        glance=glance(on),
        tables=tables,
        zeros=zeros,
        devices=tuple(
            make.part(f"{key}-{p.device}", subject.trace, p, findings.get((number, p.device), ()))
            for p in on
        ),
        charts=tuple(draw_charts(everywhere)),
        charted=len(everywhere),
    )


MOST = 600
"""Maximum number of rows of a page; rows far from any difference are dropped first."""
AROUND = 3
"""Lines of context around one that differs or costs, if not all fit."""
Place = tuple[str, int]


def draw_twins(
    names: tuple[str, str], profiles: tuple[Profile, Profile], device: str
) -> SideBySide | None:
    """Return the page of two variants on a device; None if no source is known, or no counter
    applies.
    """
    costs = [_line_costs(profile, device) for profile in profiles]
    key = next((k for k in MEASURES if any(each.get(k) for each in costs)), "")
    rows = align_lines(profiles, 0) if key else []
    if not rows:
        return None
    most = max((count for each in costs for count in each.get(key, {}).values()), default=0) or 1
    base, right = (
        _Side(_texts(profile), cost.get(key, {}), most)
        for profile, cost in zip(profiles, costs, strict=True)
    )
    twins = [TwinRow(base.line(one), right.line(other)) for one, other in rows]
    return SideBySide(device, names, MEASURES[key][0], tuple(_shown(twins)))


@dataclass(frozen=True, slots=True)
class _Side:
    """A variant's lines and their costs; `most` is the maximum over the lines of both variants."""

    texts: Mapping[Place, str]
    costs: Mapping[Place, int]
    most: int

    def line(self, place: Place | None) -> TwinLine:
        """Return the line at a place, or an empty one."""
        if place is None:
            return TwinLine(None, "", 0, 0.0)
        cost = self.costs.get(place, 0)
        return TwinLine(place[1], self.texts.get(place, ""), cost, cost / self.most)


def _shown(rows: Sequence[TwinRow]) -> Sequence[TwinRow]:
    """Return all rows if they fit, else those near one that differs or costs."""
    if len(rows) <= MOST:
        return rows
    anchors = [n for n, row in enumerate(rows) if row.differs or row.left.cost or row.right.cost]
    near = {n for place in anchors for n in range(place - AROUND, place + AROUND + 1)}
    return [row for n, row in enumerate(rows) if n in near][:MOST]


def _line_costs(profile: Profile, device: str) -> dict[str, dict[Place, int]]:
    """Return the cost of each line by each measure, over all launches on the device."""
    costs: dict[str, dict[Place, int]] = {key: {} for key in MEASURES}
    for launch in profile.launches:
        if launch.device != device or launch.refusal:
            continue
        for row in launch.lines.iter_rows(named=True):
            for key in MEASURES:
                if count := int(measure(row, key)):
                    place = str(row["file"]), int(row["line"])
                    costs[key][place] = costs[key].get(place, 0) + count
    return {key: lines for key, lines in costs.items() if lines}


def _texts(profile: Profile) -> dict[Place, str]:
    return {
        (file, number): line
        for file, text in profile.manifest.sources.items()
        for number, line in enumerate(text.splitlines(), start=1)
    }

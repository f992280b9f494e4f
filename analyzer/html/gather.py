"""Gathering the page's value from traces and profiles, within the bounds of its size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...lazy_dataclass import dataclass
from ...models.replay.options import ReplayOptions
from ...traces.reader import Trace
from ..advice.advice import Finding, advise
from ..comparison.comparison import compare_profiles
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..text.launch_text import launch_text, ranges_text
from .chart_svg import draw_charts
from .choose import Choice, choose, choose_devices, count_excess
from .device_part import PartMaker
from .figures import cell, compare_table, full_tables, glance, moved_bytes
from .side_by_side import MOST, draw_twins
from .value import Bounds, Cell, Comparison, LaunchPart, Listed, Report, SideBySide, Variant

NAMED = 3
"""Kernels in the title."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A trace to report on, under a name, with its profile; `whole` has devices in charts only."""

    name: str
    trace: Trace
    profile: Profile
    whole: Profile | None = None

    def narrowed(self, room: int) -> "Subject":
        """With at most `room` of the devices in its profile."""
        chosen = choose_devices(self.profile, room)
        by_place = {(p.number, p.device): p for p in self.profile.launches}
        kept = tuple(by_place[n, device] for n in self.profile.numbers for device in chosen)
        return replace(self, profile=replace(self.profile, launches=kept), whole=self.profile)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers within bounds; `options` are those of the replay."""

    options: ReplayOptions
    bounds: Bounds

    def gather(self, subjects: Sequence[Subject], command: str) -> Report:
        """The whole page."""
        subjects = [subject.narrowed(self.bounds.devices) for subject in subjects]
        chosen = [choose(subject.profile, self.bounds.launches) for subject in subjects]
        parts = sum(
            not launch.refusal
            for subject, choice in zip(subjects, chosen, strict=True)
            for number in choice.shown
            for launch in subject.profile.of(number)
        )
        make = PartMaker(self.options, self.bounds.share(parts))
        variants = tuple(
            self._variant(index, subject, choice, make)
            for index, (subject, choice) in enumerate(zip(subjects, chosen, strict=True))
        )
        comparisons, remarks = self._compare(subjects)
        twins = self._twins(subjects) if comparisons else ()
        kernels = dict.fromkeys(
            subject.profile.of(number)[0].launch.name
            for subject, choice in zip(subjects, chosen, strict=True)
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
        findings = {(p.number, p.device): found for p, found in advised}
        launches = tuple(
            _launch(f"v{index}-{number}", subject, number, choice, findings, make)
            for number in choice.shown
        )
        keys = {launch.number: launch.key for launch in launches}
        listed = tuple(self._list(profile, choice, keys))
        return Variant(subject.name, launches, listed, len(profile.numbers) - len(listed))

    def _list(self, profile: Profile, choice: Choice, keys: Mapping[int, str]) -> Iterator[Listed]:
        """A line a launch, the first of them."""
        numbers = profile.numbers[: self.bounds.listed]
        moved: dict[tuple[int, str], int] = {}
        for p in profile.launches:
            same = p.origin.number, p.device
            moved[p.number, p.device] = moved[same] if same in moved else moved_bytes(p)
        most = max(moved.values(), default=0) or 1
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
            yield Listed(number, launch_text(on[0].launch), tuple(cells), key, instead)

    def _compare(
        self, subjects: Sequence[Subject]
    ) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
        """Variants side by side, where there are several that launch anything."""
        if len(subjects) < 2 or not all(s.profile.launches for s in subjects):
            return (), ()
        comparison = compare_profiles({s.name: s.profile for s in subjects})
        shown = comparison.tables[: self.bounds.launches * len(subjects[0].profile.devices)]
        tables = tuple(table for t in shown if (table := compare_table(comparison, t)))
        remarks = list(comparison.notes)
        if more := len(comparison.tables) - len(shown):
            remarks.append(f"{more} more comparisons are left out; `cutrace compare` prints all")
        return tables, tuple(remarks)

    def _twins(self, subjects: Sequence[Subject]) -> tuple[SideBySide, ...]:
        """The sources of the first variant and each other, as far as the page has rows for them."""
        first, *others = subjects[: 1 + self.bounds.rows // MOST]
        drawn = (
            draw_twins((first.name, other.name), (first.profile, other.profile), device)
            for device in first.profile.devices
            for other in others
        )
        return tuple(twins for twins in drawn if twins)


def _moved_cell(launch: LaunchProfile, moved: int, most: int) -> Cell:
    """Bytes moved, and beside them what could be saved."""
    excess = count_excess(launch)
    return replace(cell(moved, moved / most), note=f"{excess:,} too many" if excess else "")


def _title(kernels: Sequence[str]) -> str:
    """The first kernels' names."""
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
    """A launch in full, on every device."""
    on = subject.profile.of(number)
    everywhere = (subject.whole or subject.profile).of(number)
    launch = on[0].launch
    tables, zeros = full_tables(on)
    compilers = (f"{c.name} {c.version} {c.target}" for c in subject.trace.manifest.compilers)
    return LaunchPart(
        key=key,
        variant=subject.name,
        number=number,
        heading=launch_text(launch),
        signature=launch.signature or launch.kernel,
        facts=(
            ("grid", " x ".join(map(str, launch.grid))),
            ("block", " x ".join(map(str, launch.block))),
            *((("cluster", " x ".join(map(str, launch.cluster))),) if launch.cluster else ()),
            ("threads", f"{launch.blocks * launch.threads:,}"),
            ("shared memory", f"{launch.shared_static + launch.shared_dynamic:,} bytes a block"),
            *((("in range", ranges),) if (ranges := ranges_text(launch)) else ()),
            *(("compiled by", compiler) for compiler in compilers),
        ),
        alike=choice.family.get(number, 1),
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

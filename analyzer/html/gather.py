"""From traces and profiles to the value that the templates show, within bounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...models.replay.device import Device, load_device
from ...models.replay.options import ReplayOptions
from ...traces.reader import Trace
from ..advice import Finding, advise
from ..comparison import compare_profiles
from ..flow import trace_flow
from ..launch_text import launch_text
from ..occupancy import draw_curves, from_launch
from ..occupancy_text import share
from ..profile import LaunchProfile, Profile
from ..why.explain import Explanation, explain_worst
from ..why.svg import draw
from .curve_svg import draw_curve
from .figures import cell, compare_table, full_tables, glance, moved_bytes, tiles
from .flow_svg import draw_flow
from .source import Found, costly_rows, draw_source
from .value import (
    Advice,
    Bounds,
    Cell,
    Comparison,
    CostlyLine,
    Curves,
    DevicePart,
    LaunchPart,
    Listed,
    Picture,
    Report,
    Variant,
)

NAMED = 3
"""Kernels in the title."""
COSTLY = 5
"""Lines in the summary of a launch."""
DRAWN = 6
"""Accesses that are drawn of a launch on a device."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A trace to report on, under a name, with its profile."""

    name: str
    trace: Trace
    profile: Profile


@dataclass(slots=True)
class Gatherer:
    """Gathers within bounds; `options` are further arguments of the `analyze()` that was called."""

    options: Mapping[str, Any]
    bounds: Bounds
    _pictures: int = 0
    _devices: dict[str, Device] = field(default_factory=dict)
    _parts: int = 1

    def gather(self, subjects: Sequence[Subject], command: str) -> Report:
        """The whole page."""
        chosen = [self._choose(subject.profile) for subject in subjects]
        self._parts = sum(
            not launch.refusal
            for subject, numbers in zip(subjects, chosen, strict=True)
            for number in numbers
            for launch in subject.profile.of(number)
        )
        variants = tuple(
            self._variant(index, subject, numbers)
            for index, (subject, numbers) in enumerate(zip(subjects, chosen, strict=True))
        )
        comparisons, remarks = self._compare(subjects)
        kernels = dict.fromkeys(
            launch.heading.partition("<<<")[0]
            for variant in variants
            for launch in variant.launches
        )
        devices = {p.device: p.device_name for s in subjects for p in s.profile.launches}
        return Report(
            _title([*kernels]),
            tuple(devices.items()),
            variants,
            comparisons,
            remarks,
            command,
        )

    def _choose(self, profile: Profile) -> dict[int, int]:
        """The launches to show in full, and how many each stands for.

        Of launches of one kernel in one shape the one that moves most stands for all.
        """
        groups: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        for number in profile.numbers:
            on = profile.of(number)
            launch = on[0].launch
            key = (launch.kernel, launch.grid, launch.block, launch.shared_dynamic)
            cost = max((moved_bytes(p) for p in on if not p.refusal), default=0)
            groups.setdefault(key, []).append((-cost, number))
        ordered = sorted(groups.values(), key=lambda group: sum(cost for cost, _ in group))
        kept = {min(group)[1]: len(group) for group in ordered[: self.bounds.launches]}
        return dict(sorted(kept.items()))

    def _variant(self, index: int, subject: Subject, numbers: Mapping[int, int]) -> Variant:
        profile = subject.profile
        shown = tuple(p for p in profile.launches if p.number in numbers)
        dlcm, settings = self.options.get("dlcm", "ca"), self.options.get("set", {})
        advised = advise(subject.trace, replace(profile, launches=shown), dlcm, settings)
        findings = {(p.number, p.device): found for p, found in advised}
        launches = tuple(
            self._launch(f"v{index}-{number}", subject, number, alike, findings)
            for number, alike in numbers.items()
        )
        keys = {launch.number: launch.key for launch in launches}
        listed = tuple(self._list(profile, keys))
        compilers = (" ".join((c.name, c.version, c.target)) for c in profile.manifest.compilers)
        return Variant(
            subject.name,
            ", ".join(compilers),
            launches,
            listed,
            len(profile.numbers) - len(listed),
        )

    def _list(self, profile: Profile, keys: Mapping[int, str]) -> Iterator[Listed]:
        """A line a launch, the first of them."""
        numbers = profile.numbers[: self.bounds.listed]
        moved = {(p.number, p.device): moved_bytes(p) for p in profile.launches}
        most = max(moved.values(), default=0) or 1
        for number in numbers:
            on = profile.of(number)
            cells = (
                Cell(None, p.refusal)
                if p.refusal
                else cell(moved[number, p.device], moved[number, p.device] / most)
                for p in on
            )
            key = keys.get(number, "")
            yield Listed(number, launch_text(on[0].launch), tuple(cells), key)

    def _launch(
        self,
        key: str,
        subject: Subject,
        number: int,
        alike: int,
        findings: Mapping[tuple[int, str], Sequence[Finding]],
    ) -> LaunchPart:
        on = subject.profile.of(number)
        launch = on[0].launch
        tables, zeros = full_tables(on)
        return LaunchPart(
            key=key,
            variant=subject.name,
            number=number,
            heading=launch_text(launch),
            signature=launch.signature or launch.kernel,
            facts=(
                ("grid", " x ".join(map(str, launch.grid))),
                ("block", " x ".join(map(str, launch.block))),
                ("threads", str(launch.blocks * launch.threads)),
                ("shared memory", f"{launch.shared_static + launch.shared_dynamic} bytes a block"),
            ),
            alike=alike,
            glance=glance(on),
            tables=tables,
            zeros=zeros,
            devices=tuple(
                self._device(f"{key}-{p.device}", subject, p, findings.get((number, p.device), ()))
                for p in on
            ),
        )

    def _device(
        self, key: str, subject: Subject, profile: LaunchProfile, findings: Sequence[Finding]
    ) -> DevicePart:
        if profile.refusal:
            return DevicePart(key, profile.device, profile.device_name, profile.refusal)
        device = self._load(profile)
        pictures = self._draw(key, subject, profile, device)
        by_access = {p.access: p.key for p in pictures}
        by_place = {p.place or p.ptx: p for p in pictures}

        def target(row: Found) -> str:
            found = by_place.get(_name_place(row))
            return found.key if found else ""

        costly = tuple(
            CostlyLine(
                _name_place(row) if row.get("line") else "",
                str(row.get("text") or row.get("ptx") or "").strip(),
                part,
                what,
                by_place[place].sentence if (place := _name_place(row)) in by_place else "",
                target(row),
            )
            for row, part, what in costly_rows(profile, COSTLY)
        )
        rows = self.bounds.rows // max(1, self._parts)
        sources = profile_sources(subject)
        return DevicePart(
            key=key,
            device=profile.device,
            name=profile.device_name,
            refusal="",
            notes=(*profile.substitutions, *profile.remarks),
            tiles=tuple(tiles(profile)),
            costly=costly,
            advice=tuple(_advice(finding, by_access) for finding in findings),
            source=draw_source(profile, sources, rows, self.bounds, target),
            flow=draw_flow(
                trace_flow(profile.raw.counts, device), f"memory flow on {profile.device_name}"
            ),
            pictures=pictures,
            curves=self._curves(subject, profile, device),
        )

    def _load(self, profile: LaunchProfile) -> Device:
        name = profile.device_file or profile.device
        if name not in self._devices:
            self._devices[name] = load_device(name, self.options.get("set", {}))
        return self._devices[name]

    def _draw(
        self, key: str, subject: Subject, profile: LaunchProfile, device: Device
    ) -> tuple[Picture, ...]:
        """The worst accesses of the lines that waste most, then of those that move most."""
        table = profile.instructions
        groups: dict[str, list[Found]] = {}
        for row in table.iter_rows(named=True):
            if row["memory_requests"]:
                groups.setdefault(_name_place(row), []).append(row)
        ordered = sorted(groups.values(), key=_waste, reverse=True)
        room = max(0, self.bounds.pictures - self._pictures)
        chosen = [[int(str(row["pc"])) for row in rows] for rows in ordered[: min(DRAWN, room)]]
        dlcm = self.options.get("dlcm", "ca")
        found = explain_worst(subject.trace, profile.number, device, dlcm, chosen)
        drawn = [explanation for explanation in found if explanation]
        self._pictures += len(drawn)
        return tuple(_picture(f"{key}-p{n}", one) for n, one in enumerate(drawn))

    def _curves(self, subject: Subject, profile: LaunchProfile, device: Device) -> Curves:
        known = {k: v for k, v in self.options.items() if k in ("cache_config", "registers")}
        options = ReplayOptions(**known)
        resident = from_launch(subject.trace.launches[profile.number], device, options)
        found = resident.found
        blocks = "1 block" if found.blocks == 1 else f"{found.blocks} blocks"
        return Curves(
            f"{blocks} of {found.need.threads} threads on an SM: {found.active_warps} of"
            f" {found.max_warps} warps, {share(found, found.active_warps)}, limited by"
            f" {', '.join(found.limited_by)}",
            tuple((name, room, room == found.blocks) for name, room in found.limits.items()),
            tuple(draw_curve(curve, found.max_warps) for curve in draw_curves(resident, options)),
        )

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


def _title(kernels: Sequence[str]) -> str:
    """The first kernels' names."""
    more = f" and {len(kernels) - NAMED} more" if len(kernels) > NAMED else ""
    return ", ".join(kernels[:NAMED]) + more or "no launches"


def profile_sources(subject: Subject) -> Mapping[str, str]:
    """The texts of a trace's sources by name."""
    return subject.trace.manifest.sources


def _name_place(row: Found) -> str:
    """`FILE:LINE`, or for an instruction without a line its text."""
    return f"{row['file']}:{row['line']}" if row.get("line") else str(row.get("ptx", ""))


def _waste(rows: Sequence[Found]) -> tuple[float, float]:
    """How much too much the instructions of a line cost, then how much they move."""

    def total(*names: str) -> float:
        return sum(float(str(row.get(name) or 0)) for row in rows for name in names)

    excess = total("global_excess_transactions", "shared_conflicts", "constant_passes")
    moved = total("global_bytes_moved", "local_load_bytes_moved", "local_store_bytes_moved")
    return excess - total("constant_ideal_passes"), moved + total("memory_requests")


def _picture(key: str, found: Explanation) -> Picture:
    assert found.access is not None
    return Picture(
        key,
        str(found.place) if found.place else "",
        found.source,
        found.sentence,
        found.reason,
        f"block {found.block}, warp {found.access.warp}",
        found.access.identifier,
        found.ptx,
        draw(found),
    )


def _advice(finding: Finding, by_access: Mapping[str, str]) -> Advice:
    return Advice(
        finding.rule,
        finding.place,
        finding.what,
        finding.evidence,
        finding.change,
        finding.share,
        finding.access,
        by_access.get(finding.access, ""),
    )

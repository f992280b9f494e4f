"""One launch on one device: its figures, lines, advice, source, data flow, pictures and curves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device, load_device
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import LaunchTrace, Trace
from ..advice.advise import gain_text
from ..counting.memory_flow import trace_flow
from ..evidence.evidence import Finding
from ..launch_profile import LaunchProfile
from ..occupancy.curve_svg import draw_curve
from ..occupancy.occupancy import draw_curves, from_launch, share
from ..reuse.reuse import measure
from ..reuse.reuse_svg import draw_reuse
from ..why.explain import Explanation, explain_worst
from ..why.svg import draw
from .branches_svg import draw_branches
from .figures import bad_units, tiles
from .flame_svg import draw_flame
from .flow_svg import draw_flow
from .limits_svg import draw_limits
from .source import Context, costly_rows, draw_source
from .value import Advice, Bounds, CostlyLine, Curves, DevicePart, Picture

COSTLY = 5
"""Lines in the summary of a launch."""
DRAWN_ROWS = 1 << 18
"""Maximum number of accesses of a launch for miss-ratio curves: a second of work."""


@dataclass(frozen=True, slots=True)
class PartMaker:
    """Builds parts; `options` are those of the profiles' `analyze()`, `bounds` those of one
    part."""

    options: ReplayOptions
    bounds: Bounds
    _devices: dict[str, Device] = field(default_factory=dict)
    _drawn: dict[tuple[Path, int], tuple[str, ...]] = field(default_factory=dict)

    def part(
        self, key: str, trace: Trace, profile: LaunchProfile, findings: Sequence[Finding]
    ) -> DevicePart:
        """Return all content on a launch on a device; `key` is the prefix of its link targets."""
        if profile.refusal:
            return DevicePart(key, profile.device, profile.device_name, profile.refusal)
        device = self._load(profile)
        pictures = self._draw(key, trace, profile, device)
        by_access = {p.access: p.key for p in pictures}
        by_place = {p.place or p.ptx: p for p in pictures}

        def target(row: Context) -> str:
            picture = by_place.get(_name_place(row))
            return picture.key if picture else ""

        rules = {finding.rule for finding in findings}
        title = f"memory flow on {profile.device_name}"
        return DevicePart(
            key=key,
            device=profile.device,
            name=profile.device_name,
            refusal="",
            notes=tuple(filter(None, (profile.verdict, *profile.substitutions, *profile.remarks))),
            tiles=tuple(tiles(profile, rules)),
            costly=tuple(_costly(profile, by_place)),
            advice=tuple(_advice(each, gain_text(each, profile), by_access) for each in findings),
            source=replace(
                draw_source(profile, trace.manifest.sources, self.bounds, target),
                flame=draw_flame(profile),
            ),
            limits=tuple(draw_limits(profile)),
            branches=self._branches(trace, profile),
            flow=draw_flow(trace_flow(profile.raw.counts, device), title, bad_units(rules)),
            reuse=self._reuse(trace.launch(profile.number), device),
            pictures=pictures,
            curves=self._curves(trace.launch(profile.number), device),
        )

    def _branches(self, trace: Trace, profile: LaunchProfile) -> tuple[str, ...]:
        """Return the drawings of divergent branches, which are the same on all devices."""
        key = trace.path, profile.number
        if key not in self._drawn:
            launch = trace.launch(profile.number)
            self._drawn[key] = tuple(draw_branches(profile, launch))
        return self._drawn[key]

    def _load(self, profile: LaunchProfile) -> Device:
        name = profile.device_file or profile.device
        if name not in self._devices:
            self._devices[name] = load_device(name, self.options.set)
        return self._devices[name]

    def _draw(
        self, key: str, trace: Trace, profile: LaunchProfile, device: Device
    ) -> tuple[Picture, ...]:
        """Return the worst accesses of the lines with the most waste, then of those that move most
        bytes.
        """
        groups: dict[str, list[Context]] = {}
        for row in profile.instructions.iter_rows(named=True):
            if row["memory_requests"]:
                groups.setdefault(_name_place(row), []).append(row)
        ordered = sorted(groups.values(), key=_waste, reverse=True)[: self.bounds.pictures]
        pc_groups = [[int(str(row["pc"])) for row in rows] for rows in ordered]
        explanations = explain_worst(trace, profile.number, device, self.options.dlcm, pc_groups)
        drawn = [explanation for explanation in explanations if explanation]
        return tuple(_picture(f"{key}-p{n}", one) for n, one in enumerate(drawn))

    def _reuse(self, launch: LaunchTrace, device: Device) -> str:
        """Return the miss-ratio curves of a launch that is small enough for another replay."""
        caches = any(stage.model == "cache" for stage in device.stages)
        if not caches or not self.options.caches or launch.count("accesses") > DRAWN_ROWS:
            return ""
        return draw_reuse(list(measure(launch, device, self.options)))

    def _curves(self, launch: LaunchTrace, device: Device) -> Curves:
        resident = from_launch(launch, device, self.options)
        occupancy = resident.occupancy
        blocks = "1 block" if occupancy.blocks == 1 else f"{occupancy.blocks} blocks"
        return Curves(
            f"{blocks} of {occupancy.need.threads} threads on an SM: {occupancy.active_warps} of"
            f" {occupancy.max_warps} warps, {share(occupancy, occupancy.active_warps)}, limited by"
            f" {', '.join(occupancy.limited_by)}",
            tuple(
                (name, capacity, capacity == occupancy.blocks)
                for name, capacity in occupancy.limits.items()
            ),
            tuple(
                draw_curve(curve, occupancy.max_warps)
                for curve in draw_curves(resident, self.options)
            ),
        )


def _costly(profile: LaunchProfile, by_place: Mapping[str, Picture]) -> Iterator[CostlyLine]:
    """Yield the costliest lines, each with the sentence of its picture if it has one."""
    for row, part, what in costly_rows(profile, COSTLY):
        picture = by_place.get(_name_place(row))
        yield CostlyLine(
            _name_place(row) if row.get("line") else "",
            str(row.get("text") or row.get("ptx") or "").strip(),
            part,
            what,
            picture.sentence if picture else "",
            picture.key if picture else "",
        )


def _name_place(row: Context) -> str:
    """Return `FILE:LINE`, or the text of an instruction without a line."""
    return f"{row['file']}:{row['line']}" if row.get("line") else str(row.get("ptx", ""))


def _waste(rows: Sequence[Context]) -> tuple[float, float]:
    """Return the excess cost of a line's instructions, then the bytes that they move."""

    def total(*names: str) -> float:
        return sum(float(str(row.get(name) or 0)) for row in rows for name in names)

    excess = total("global_excess_transactions", "shared_conflicts", "constant_wavefronts")
    moved = total(
        "global_bytes_transferred", "local_load_bytes_transferred", "local_store_bytes_transferred"
    )
    return excess - total("constant_ideal_wavefronts"), moved + total("memory_requests")


def _picture(key: str, explanation: Explanation) -> Picture:
    assert explanation.access is not None
    return Picture(
        key,
        str(explanation.place) if explanation.place else "",
        explanation.source,
        explanation.sentence,
        explanation.reason,
        f"block {explanation.block}, warp {explanation.access.warp}",
        explanation.access.identifier,
        explanation.ptx,
        draw(explanation),
    )


def _advice(finding: Finding, gain: str, by_access: Mapping[str, str]) -> Advice:
    return Advice(
        finding.rule,
        finding.place,
        finding.what,
        finding.evidence,
        finding.change,
        finding.share,
        finding.access,
        by_access.get(finding.access, ""),
        gain,
    )

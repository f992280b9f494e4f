"""Sentences and formatted numbers shared by the report formats for people."""

from collections.abc import Sequence

from ..base.sanitize import one_line
from .counting.bounds import Bound, sampled_text, time_text, verdict
from .counting.vocabulary import OURS
from .launch_profile import LaunchProfile
from .sheet import Block, Row, Section, Sheet
from .text.layout import align
from .text.number import bracket
from .time.estimate_text import between_text, estimate_text
from .view import View

PTX_IS_NOT_SASS = (
    "PTX is not SASS: the assembler merges, unrolls, predicates and removes instructions, so"
    " counts of instructions, branches and local accesses may differ from a chip's."
)

IN_FULL = frozenset({"cuda-profiler"})
"""Vocabularies whose zeros are shown."""
FEW = 8
"""Maximum number of zero counters of other vocabularies that are named; beyond it they are
counted."""
SENTENCES = 6
"""Maximum number of devices whose limits are sentences; for more they are a table."""


def estimate(row: Row, device: int) -> str:
    """Return a table cell: a formatted value, with its interval in brackets if it has one."""
    return bracket(row.values[device], row.interval(device), row.counter)


def title(block: Block) -> str:
    """Return the line, array or instruction of a block as text; empty for the whole launch."""
    key = block.key
    if "array" in key:
        return f"array {key['array']}"
    place = f"{key['file']}:{key['line']}" if key.get("line") else "no source line"
    if "pc" in key:
        return f"pc {key['pc']}  {key['ptx']}  ({place})"
    return f"{place}  {str(key['text']).strip()}" if key else ""


def is_folded(row: Row, section: Section, view: View) -> bool:
    """Return whether a row is folded: no device has the counter, or `zeros` names it.

    The first profiler's few counters are always shown in full, and so are counters requested by
    name.
    """
    if view.counters:
        return False
    return row.is_empty or (row.is_zero and section.vocabulary not in IN_FULL)


def zeros(sheet: Sheet, view: View) -> str:
    """Return a sentence with the names of all folded counters that are zero on every device.

    Of NVIDIA's vocabularies, which are large and overlap with cutrace's, only the number is given.
    """
    counters: dict[str, list[str]] = {}
    for block in sheet.blocks:
        for section in block.sections:
            folded = [r for r in section.rows if r.is_zero and is_folded(r, section, view)]
            counters.setdefault(section.vocabulary, []).extend(r.counter.name for r in folded)
    named = [name for vocabulary, names in counters.items() if vocabulary == OURS for name in names]
    for vocabulary, names in counters.items():
        if vocabulary != OURS and len(names) > FEW:
            named.append(f"{len(names)} counters of {vocabulary}")
        elif vocabulary != OURS:
            named += names
    return f"0 on every device: {', '.join(named)}" if named else ""


def absent(sheet: Sheet, view: View) -> str:
    """Return a sentence on the requested counters that no device has."""
    if not view.counters or all(sheet.refusals):
        return ""
    rows = [row for block in sheet.blocks for part in block.sections for row in part.rows]
    has = {row.counter.name for row in rows if not row.is_empty}
    lacks = dict.fromkeys(row.counter.name for row in rows if row.counter.name not in has)
    hints = [f"{name} (`cutrace counters {name}` says which have it)" for name in lacks]
    return f"not counted on {', '.join(sheet.devices)}: {', '.join(hints)}" if hints else ""


def limits(sheet: Sheet) -> list[str]:
    """Return the limit of a launch on each device with bounds, a sentence or table row each."""
    pairs = [(d, b) for d, b in zip(sheet.devices, sheet.bounds, strict=True) if b]
    if len(sheet.devices) > SENTENCES:
        return _limit_rows(pairs)
    verdicts = [(device, verdict(bounds)) for device, bounds in pairs]
    return [f"{device}: {text}" if len(sheet.devices) > 1 else text for device, text in verdicts]


def limit_sentences(on: Sequence[LaunchProfile]) -> list[str]:
    """Return the limit of a launch on each device, or why it is unknown, a sentence or row each.

    If latencies were not measured, a sentence states that there is no time estimate.
    """
    if len(on) > SENTENCES:
        unknown = (f"{p.device}: {p.refusal or _why_unknown(p)}" for p in on if not p.bounds)
        return [*_limit_rows([(p.device, p.bounds) for p in on if p.bounds]), *unknown]
    sentences = [(p.device, p.refusal or _verdict(p) or _why_unknown(p)) for p in on]
    return [f"{device}: {text}" if len(on) > 1 else text for device, text in sentences]


def _limit_rows(pairs: Sequence[tuple[str, Sequence[Bound]]]) -> list[str]:
    """Return the limits of a launch on many devices as table rows under a heading."""
    rows = [
        (device, *(f"{b.resource}, {time_text(b.ns)}" for b in bounds[:2]))
        for device, bounds in pairs
    ]
    head = [("device", "limited by, at least", "next")] if rows else []
    return align([*head, *((*row, "")[:3] for row in rows)])


def _verdict(profile: LaunchProfile) -> str:
    return (
        f"{profile.verdict}; no estimate"
        if profile.bounds and not profile.estimate
        else profile.verdict
    )


def estimate_sentences(on: Sequence[LaunchProfile]) -> list[str]:
    """Return the estimated time and its components per device, a sentence each."""
    sentences = [(p.device, text) for p in on if not p.refusal and (text := _estimate_text(p))]
    return [f"{device}: {text}" if len(on) > 1 else text for device, text in sentences]


def _estimate_text(profile: LaunchProfile) -> str:
    """Return the estimated time of a launch, or the range of a sampled one; empty if unknown."""
    if profile.estimate:
        return estimate_text(profile.estimate)
    return between_text(*profile.estimate_between) if profile.estimate_between else ""


def _why_unknown(profile: LaunchProfile) -> str:
    """Return why the limit of a launch that the device can run is unknown."""
    if profile.launch.kept.sample.blocks:
        least_time = sampled_text(profile.bounds_between)
        least = (
            f"; 95 times in 100 at least {least_time}, without caches and memory"
            if least_time
            else ""
        )
        return f"no limit known: of a sample of blocks no bound is certain{least}"
    if not profile.launch.kept.is_whole:
        return "no limit known: only a part of the launch was recorded"
    if "dram_bytes_read" not in profile.raw.counts.columns:
        return "no limit known: caches were not counted"
    return (
        "no limit known: nothing reaches DRAM, and the device's file has no clock for the rest;"
        " --set chip.clock_mhz=N gives one"
    )


def costs(sheet: Sheet) -> list[str]:
    """Return the costliest lines of each device: place and text, then the share of the cost."""
    hotspots: dict[tuple[str, int, str], dict[str, list[str]]] = {}
    for device, top in zip(sheet.devices, sheet.costliest, strict=True):
        if top is not None:
            shares = hotspots.setdefault((top.file, top.line, top.text), {})
            shares.setdefault(f"{100 * top.share:.0f} % of the {top.what}", []).append(device)
    return [
        line
        for (file, number, text), shares in hotspots.items()
        for line in (
            one_line(f"costs most: {file}:{number}  {text}"),
            *(f"  {share} on {', '.join(devices)}" for share, devices in shares.items()),
        )
    ]

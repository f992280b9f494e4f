"""A profile as a document: a summary of each launch, or its tables of counters.

A program launches a few kernels hundreds of times: then there is a row for each kernel, and details
of single launches, chosen by number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from ..base.sanitize import one_line
from .counting.evaluate import Value
from .counting.vocabulary import OURS
from .launch_profile import KEYS, Costliest, LaunchProfile
from .overview import (
    costliest_number,
    costliest_only,
    distinct_launches,
    is_brief,
    is_long,
    launch_lines,
    overview_tables,
    summary,
)
from .profile import Profile
from .report.document import (
    Block,
    Document,
    Excerpt,
    Heading,
    Listing,
    Next,
    Note,
    Row,
    Rows,
    Section,
    Table,
)
from .report.view import View
from .sheet import Sheet, sheets
from .summary import Summary
from .summary_text import labelled, time_line
from .text.launch_text import NO_LAUNCHES, host_text
from .time.estimate import Estimate
from .time.estimate_text import Range, WaitingLine, estimate_interval

FORMAT = "cutrace-profile-1"
PTX_IS_NOT_SASS = (
    "PTX is not SASS: the assembler merges, unrolls, predicates and removes instructions, so"
    " counts of instructions, branches and local accesses may differ from a chip's."
)
FEW = 8
"""Maximum number of zero counters of other vocabularies that are named; beyond it they are
counted."""


def profile_document(profile: Profile) -> Document:
    """Return the document of a profile, as its view shows it."""
    return Document(
        profile.view,
        lambda: _sections(profile),
        lambda: _rows(profile),
        lambda: _fields(profile),
        subject=profile,
    )


def _sections(profile: Profile) -> Iterator[Section]:
    view = profile.view
    host = "" if view.quiet else host_text(profile.manifest)
    if heads := [text for text in (view.first, host) if text]:
        yield [*map(Note, heads)]
    if not profile.launches:
        yield [Note(NO_LAUNCHES)]
        return
    if is_brief(view) and not is_long(profile):
        yield from _brief(profile)
        return
    if is_long(profile) or view.of_ranges:
        yield [Note(summary(profile))]
        yield from ([table] for table in overview_tables(profile))
        if view.by == "launch":
            sums = SUMS.replace("a kernel", "a range") if view.of_ranges else SUMS
            yield [Note(sums), *_next_launch(profile)]
            return
        yield [Note("Below, the costliest launch of each; --launch N shows another.")]
        profile = costliest_only(profile)
    yield from _launches(profile)


SUMS = (
    "Sums of counters over all launches of a kernel; ratios from the least to the most. --launch N"
    " shows one launch."
)


def _next_launch(profile: Profile) -> Iterator[Block]:
    view = profile.view
    if view.typed:
        one = costliest_number(profile)
        yield Next(f"{view.typed} --launch {one}{view.program_suffix}")


def _brief(profile: Profile) -> Iterator[Section]:
    """Yield the summary: a few lines per launch, and the commands for more."""
    view = profile.view
    advice = [line for each in view.advice for line in labelled(*each, view.width)]
    shown = [*distinct_launches(profile)]
    names = {on[0].launch.name for on, _ in shown}
    for on, again in shown:
        heading, *others = launch_lines(on, view.width, names)
        head = f"{heading[0]}  ({again} launches)" if again > 1 else heading[0], heading[1]
        yield [Listing((head, *others, *(advice if len(shown) == 1 else ())))]
    if len(shown) > 1:
        yield [Listing((*advice,))]
    if view.last and not view.quiet:
        yield [Next(view.last)]


def _launches(profile: Profile) -> Iterator[Section]:
    """Yield the tables of every launch, and what is to be said of them."""
    view = profile.view
    laid_out = sheets(profile.launches, view)
    notes = [[*_notes(sheet, view)] for sheet in laid_out]
    common = [each for each in notes[0] if all(each in others for others in notes[1:])]
    common = common if len(notes) > 1 else []
    for sheet, mine in zip(laid_out, notes, strict=True):
        ranges = [Note(f"In range {sheet.ranges}.")] if sheet.ranges else []
        yield [Heading(sheet.heading), *ranges, *map(Note, _times(sheet))]
        yield [sheet.tables]
        own = [each for each in mine if each not in common]
        if not view.quiet and (own or len(notes) == 1 or view.by != "launch"):
            yield from _broken(own)
    if view.quiet:
        return
    if common:
        yield from _broken([(Heading("", "every launch:"),), *common])
    last: list[Block] = [Next(view.last)] if view.last else []
    if any(sheet.follows_ptx for sheet in laid_out) and not profile.manifest.is_machine_code:
        last.insert(0, Note(PTX_IS_NOT_SASS))
    yield last


Paragraph = tuple[Block | None, ...]
"""Blocks, of which None is a blank line."""


def _broken(paragraphs: Sequence[Paragraph]) -> Iterator[Section]:
    """Yield the sections between blank lines."""
    section: list[Block] = []
    for block in (block for paragraph in paragraphs for block in paragraph):
        if block is None:
            yield section
            section = []
        else:
            section.append(block)
    yield section


def _notes(sheet: Sheet, view: View) -> Iterator[Paragraph]:
    """Yield the paragraphs under a launch's tables."""
    if sheet.left_out:
        yield (Note(sheet.left_out),)
    for text in (_absent(sheet, view), _zeros(sheet)):
        if text:
            yield Note(text), None
    if lines := _costs(sheet):
        yield (Excerpt((*lines,)),)
    yield from ((Note(text),) for text in sheet.notes)


def _zeros(sheet: Sheet) -> str:
    """Return a sentence with the names of all folded counters that are zero on every device.

    Of NVIDIA's vocabularies, which are large and overlap with cutrace's, only the number is given.
    """
    counters: dict[str, list[str]] = {}
    for table in sheet.tables.tables:
        folded = [row.name for row in table.rows if row.is_zero and row.is_folded]
        counters.setdefault(table.title, []).extend(folded)
    named = counters.get(OURS, [])[:]
    for vocabulary, names in counters.items():
        if vocabulary != OURS and len(names) > FEW:
            named.append(f"{len(names)} counters of {vocabulary}")
        elif vocabulary != OURS:
            named += names
    return f"0 on every device: {', '.join(named)}" if named else ""


def _absent(sheet: Sheet, view: View) -> str:
    """Return a sentence on the requested counters that no device has."""
    if not view.counters or all(sheet.tables.refusals):
        return ""
    rows = [row for table in sheet.tables.tables for row in table.rows]
    has = {row.name for row in rows if not row.is_empty}
    lacks = dict.fromkeys(row.name for row in rows if row.name not in has)
    hints = [f"{name} (`cutrace counters {name}` says which have it)" for name in lacks]
    return f"not counted on {', '.join(sheet.devices)}: {', '.join(hints)}" if hints else ""


def _times(sheet: Sheet) -> Iterator[str]:
    """Yield the time of a launch on each device that can run it, a sentence each."""
    for p in sheet.profiles:
        if p.bounds or p.estimate_between:
            yield f"{p.device}: {time_line(p)}" if len(sheet.devices) > 1 else time_line(p)


def _costs(sheet: Sheet) -> list[str]:
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


BEFORE = ("launch", "kernel", "device")
AFTER = ("vocabulary", "counter", "unit", "value")
ENDS = ("low", "high")
"""Columns of a sampled launch: the ends of the 95 % confidence interval."""


def _rows(profile: Profile) -> Rows:
    """Return one row per value; the grouping's keys are between BEFORE and AFTER."""
    sampled = any(launch.launch.kept.sample.blocks for launch in profile.launches)
    head = (*BEFORE, *KEYS.get(profile.view.by, ()), *AFTER, *(ENDS if sampled else ()))
    return head, _values(profile, sampled)


def _values(profile: Profile, sampled: bool) -> Iterator[tuple[object, ...]]:
    for sheet in sheets(profile.launches, profile.view):
        for table, row in _each_row(sheet):
            assert row.counter
            for device, cell in zip(sheet.devices, row.cells, strict=True):
                before = (sheet.number, sheet.heading, device, *table.key.values())
                after = (table.title, row.name, row.counter.unit, cell.value)
                yield (*before, *after, *((cell.interval or ("", "")) if sampled else ()))


def _each_row(sheet: Sheet) -> Iterator[tuple[Table, Row]]:
    yield from ((table, row) for table in sheet.tables.tables for row in table.rows)


def _fields(profile: Profile) -> dict[str, object]:
    """Return the whole profile as one object, keys in a fixed order."""
    return {
        "format": FORMAT,
        "fix": profile.view.fix,
        "launches": [_sheet(sheet) for sheet in sheets(profile.launches, profile.view)],
    }


def _sheet(sheet: Sheet) -> dict[str, object]:
    """Return one launch: its facts, its result on each device, and the counters."""
    on = zip(sheet.profiles, sheet.summaries, sheet.costliest, strict=True)
    return {
        "launch": sheet.number,
        "kernel": sheet.heading,
        **({"ranges": sheet.ranges} if sheet.ranges else {}),
        "devices": [_device(*each) for each in on],
        "notes": list(sheet.notes),
        "counters": [_counter(sheet, table, row) for table, row in _each_row(sheet)],
    }


def _device(p: LaunchProfile, summary: Summary | None, top: Costliest | None) -> dict[str, object]:
    """Return the result on a device; of a sample the ends of bounds and times that are certain."""
    facts: dict[str, object] = {
        "device": p.device,
        "refusal": p.refusal,
        "limited_by": p.bounds[0].resource if p.bounds else None,
        "bounds": [asdict(bound) for bound in p.bounds],
    }
    if p.bounds_between:
        facts["bounds_between"] = [[*map(asdict, each)] for each in p.bounds_between]
    facts["estimate"] = _estimate(p.estimate, p.within, p.waiting_lines) if p.estimate else None
    if p.estimate_between:
        facts["estimate_between"] = [_estimate(each, p.within, ()) for each in p.estimate_between]
    if summary:
        facts |= {k: v for k, v in asdict(summary).items() if k not in ("busy", "stalls")}
    cost = asdict(top) if top else {}
    facts["costs_most"] = {"of" if k == "what" else k: v for k, v in cost.items()} or None
    return facts


def _estimate(
    estimate: Estimate, within: Range, waiting: Sequence[WaitingLine]
) -> dict[str, object]:
    """Return the time estimate of a launch and its components."""
    return {
        "ns": estimate.ns,
        "interval_ns": list(estimate_interval((estimate.ns, estimate.ns), within)),
        "mhz": estimate.mhz,
        "parts": [asdict(part) for part in estimate.parts],
        "waits": dict(estimate.stalls),
        "busy": dict(estimate.busy),
        "lines": [asdict(line) for line in waiting],
    }


def _counter(sheet: Sheet, table: Table, row: Row) -> dict[str, object]:
    """Return a counter with a value per device; of a sample also the ends of its intervals, null if
    a value is exact or unknown.
    """
    assert row.counter
    ends = [cell.interval or (None, None) for cell in row.cells]
    values: dict[str, Sequence[Value]] = {"values": [cell.value for cell in row.cells]}
    if sheet.is_sample:
        values |= {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
    return {
        **table.key,
        "vocabulary": table.title,
        "counter": row.name,
        "unit": row.counter.unit,
        **{name: dict(zip(sheet.devices, each, strict=True)) for name, each in values.items()},
    }

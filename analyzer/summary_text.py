"""The first screen: a launch's summary as labelled lines, or as a table if there are many devices.

    time      about 17 us (14 to 23) at 1,580 MHz; no faster than 2.26 us (L2)
    busy      SM     13 %  ###.................   L1     61 %  ############........
              L2     86 %  #################...   DRAM    7 %  #...................

What a launch does not have, or is not known, is left out.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ..base.sanitize import one_line
from ..models.replay.device.measured import has_latencies
from .counting.bounds import Bound, amount_text, sampled_text, time_text
from .launch_profile import LaunchProfile, costliest_lines
from .summary import GlobalAccess, Residency, SharedAccess, Summary, summarize
from .text.layout import GAP, align, widths, wrapped
from .time.estimate_text import about_text, between_text, stalls_text

LABEL = 10
"""Columns of a label."""
BAR = 20
"""Columns of a bar."""
TWO_BARS = 79
"""Columns of a line with two bars."""
PIPE = 100
"""Column at which lines are wrapped on a pipe."""
LINES_SHOWN, LEAST_COST = 2, 0.1
"""Most lines of a launch that are shown, and the least share of the cost of the second."""
DRAM = "DRAM"
NAMED = ("time", "no faster than")
"""Columns that a table of devices has at any width."""

Line = tuple[str, str]
"""A line of text and its rich style."""


def summary_lines(on: Sequence[LaunchProfile], width: int | None) -> Iterator[Line]:
    """Yield the lines under a launch's heading, on all devices.

    `width` is the terminal's; None on a pipe, where the place and text of a line are not cut.
    """
    columns = min(width or PIPE, PIPE)
    running = [launch for launch in on if not launch.refusal]
    for launch in on:
        if launch.refusal:
            yield from ((line, "") for line in wrapped(f"{launch.device}: {launch.refusal}", width))
    if len(on) > 1:
        yield from ((line, "") for line in _table(running, columns))
        for reason, devices in _unestimated(running).items():
            text = f"no estimate on {', '.join(devices)}: {reason}"
            yield from ((line, "") for line in wrapped(text, width, hang=""))
    elif running:
        for label, text in _entries(running[0], columns):
            yield from labelled(label, text, width)
    for text, devices in _warnings(on).items():
        named = f"{', '.join(devices)}: {text}"
        yield from ((line, "") for line in wrapped(named, width, hang=""))
    if running:
        first, *others = map(_hot_texts, running)
        differs = any(each != first for each in others)
        where = f" on {running[0].device}" * (differs or len(running) < len(on))
        yield from _hot_lines(running[0], width, where)


def labelled(label: str, text: str, width: int | None) -> Iterator[Line]:
    """Yield a labelled entry, wrapped under its text."""
    yield from ((line, "") for line in _wrapped(label, text, min(width or PIPE, PIPE)))


def _wrapped(label: str, text: str, columns: int | None) -> list[str]:
    head = f"{label:{LABEL}}" if len(label) < LABEL else f"{label} "
    if columns is None:
        return [head + text]
    return wrap(
        text,
        max(columns, 2 * LABEL),
        initial_indent=head,
        subsequent_indent=" " * LABEL,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entries(launch: LaunchProfile, columns: int) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact of a launch on a device."""
    yield "time", time_line(launch)
    facts = summarize(launch)
    if not facts:
        return
    yield from _busy(facts, columns)
    if facts.access:
        yield "global", _access_text(facts.access)
    if facts.shared:
        yield "shared", _shared_text(facts.shared)
    if caches := _caches_text(facts):
        yield "caches", caches
    if facts.residency:
        yield "occupancy", _residency_text(facts.residency)
    if stalls := stalls_text(facts.stalls):
        yield "stalls", stalls


def time_line(launch: LaunchProfile) -> str:
    """Return the estimated time with its interval and the lower bound, as far as they are known."""
    estimate, bound = launch.estimate, launch.bounds[0] if launch.bounds else None
    if estimate:
        # the estimate has the profiler's clock, the bound the highest: no clock makes it faster
        limit = f"; {_limit(bound, ' at any clock')}" if bound else ""
        return f"{about_text(estimate.ns, launch.within)} at {estimate.mhz:,.0f} MHz{limit}"
    if launch.estimate_between:
        return between_text(*launch.estimate_between)
    if bound:
        return f"{_limit(bound)}; no estimate: {_why_no_estimate(launch)}"
    return _why_unknown(launch)


def _why_no_estimate(launch: LaunchProfile) -> str:
    """Return why a launch with bounds has no estimate."""
    if launch.unknown:
        return launch.unknown
    if launch.launch.code:
        return "the code branches where its schedule does not say; record PTX for one"
    if not has_latencies(launch.capability):
        major, minor = launch.capability
        return f"no latencies {'below capability 7.0' if major < 7 else f'of {major}.{minor}'}"
    if {bound.resource for bound in launch.bounds} == {DRAM}:
        return "the device's file has no clock"
    return "the trace lacks the operands of PTX"


def _limit(bound: Bound, where: str = "") -> str:
    amount = f"({bound.resource}, {amount_text(bound)})"
    return f"no faster than {time_text(bound.ns)}{where} {amount}"


def _why_unknown(launch: LaunchProfile) -> str:
    """Return why the time of a launch that the device can run is unknown."""
    if launch.launch.kept.sample.blocks:
        least = sampled_text(launch.bounds_between)
        beyond = f"; 95 times in 100 at least {least}, without caches and memory" if least else ""
        return f"no limit known: of a sample of blocks no bound is certain{beyond}"
    if not launch.launch.kept.is_whole:
        return "no limit known: only a part of the launch was recorded"
    if "dram_bytes_read" not in launch.raw.counts.columns:
        return "no limit known: caches were not counted"
    return (
        "no limit known: nothing reaches DRAM, and the device's file has no clock for the rest;"
        " --set chip.clock_mhz=N gives one"
    )


def _busy(facts: Summary, columns: int) -> Iterator[tuple[str, str]]:
    """Yield the bars, two in a line where there is room."""
    bars = [f"{unit:4} {100 * part:4.0f} %  {_bar(part)}" for unit, part in facts.busy.items()]
    many = 2 if columns >= TWO_BARS else 1
    for at in range(0, len(bars), many):
        yield ("" if at else "busy"), "   ".join(bars[at : at + many])


def _bar(part: float) -> str:
    """Return a bar of a share.

    >>> _bar(0.86)
    '#################...'
    """
    filled = min(BAR, round(part * BAR))
    return "#" * filled + "." * (BAR - filled)


def _percent(share: float | None) -> str:
    """Return a share in three digits.

    >>> _percent(0.125), _percent(0.98765), _percent(1.0)
    ('12.5 %', '98.8 %', '100 %')
    """
    return "" if share is None else f"{100 * share:.3g} %"


def _access_text(access: GlobalAccess) -> str:
    each, ideal = (n / access.requests for n in (access.transactions, access.ideal))
    few = "as few as possible" if ideal >= each else f"{ideal:.3g} would do"
    whose = "that loads and stores move" if access.has_atomics else "moved"
    used = f"{_percent(access.used)} of the bytes {whose} are used"
    return f"{_per_request(each, access.unit)}, {few}{'' if access.used is None else f': {used}'}"


def _per_request(each: float, unit: str) -> str:
    """Return a mean.

    >>> _per_request(13.14, "sectors"), _per_request(1.0, "wavefronts")
    ('13.1 sectors per request', '1 wavefront per request')
    """
    count = f"{each:.3g}"
    return f"{count} {unit.removesuffix('s') if count == '1' else unit} per request"


def _shared_text(shared: SharedAccess) -> str:
    each, ideal = (n / shared.requests for n in (shared.wavefronts, shared.ideal))
    few = "no conflicts" if ideal >= each else f"{ideal:.3g} would do"
    return f"{_per_request(each, 'wavefronts')}, {few}"


def _caches_text(facts: Summary) -> str:
    caches = facts.caches
    if not caches:
        return ""
    rates = {"L1": caches.l1_hit_rate, "L2": caches.l2_hit_rate}
    hits = ", ".join(f"{k} hits {_percent(rate)}" for k, rate in rates.items() if rate is not None)
    written = caches.dram_bytes_written
    moved = {
        **{"read from DRAM": caches.dram_bytes - written, "written to DRAM": written},
        "read from the host over PCIe": caches.host_bytes_read,
        "written to the host over PCIe": caches.host_bytes_written,
    }
    parts = (
        f"{amount_text(Bound(DRAM, 0.0, amount, 'bytes'))} {what}"
        for what, amount in moved.items()
        if amount
    )
    return "; ".join(filter(None, (hits, ", ".join(parts))))


def _residency_text(fits: Residency) -> str:
    registers = f", {fits.registers} registers a thread" if fits.registers else ""
    held = f"{_percent(fits.occupancy)} (limited by {' and '.join(fits.limited_by)}){registers}"
    blocks = f"{fits.blocks:,} block{'s' * (fits.blocks > 1)} on {fits.sms} SMs"
    idle = f"{fits.idle_sms} SMs idle" if fits.idle_sms else f"{fits.waves:.2g} waves"
    return f"{held}; {blocks}: {idle}"


def _hot_lines(launch: LaunchProfile, width: int | None, where: str) -> Iterator[Line]:
    """Yield the costliest lines, with their source."""
    for index, text in enumerate(_hot_texts(launch, where)):
        yield from ((line, "yellow") for line in _wrapped("" if index else "hot line", text, width))


def _hot_texts(launch: LaunchProfile, where: str = "") -> list[str]:
    """Return the costliest lines, each with its share of the cost."""
    tops = costliest_lines(launch.lines, launch.limited_by, LINES_SHOWN)
    return [
        one_line(
            f"{top.file}:{top.line}  {top.text}  ({100 * top.share:.0f} % of the {top.what}{where})"
        )
        for index, top in enumerate(tops)
        if not index or top.share >= LEAST_COST
    ]


def _unestimated(on: Sequence[LaunchProfile]) -> dict[str, list[str]]:
    """Return the reasons why launches with bounds have no estimate, each with its devices."""
    devices_by_reason: dict[str, list[str]] = {}
    for launch in on:
        if launch.bounds and not launch.estimate and not launch.estimate_between:
            devices_by_reason.setdefault(_why_no_estimate(launch), []).append(launch.device)
    return devices_by_reason


def _warnings(on: Sequence[LaunchProfile]) -> dict[str, list[str]]:
    """Return the warnings of a launch, each with the devices that it applies to."""
    devices_by_text: dict[str, list[str]] = {}
    for launch in on:
        for text in (*launch.substitutions, *launch.warnings):
            devices_by_text.setdefault(text, []).append(launch.device)
    return devices_by_text


def _table(on: Sequence[LaunchProfile], columns: int) -> list[str]:
    """Return a row per device; the last columns are left out where they have no room."""
    rows = [_row(launch) for launch in on]
    heads = [head for head in rows[0] if any(row[head] for row in rows)] if rows else []
    while heads:
        cells = ([row[head] for head in heads] for row in rows)
        table = [(p.device, *each) for p, each in zip(on, cells, strict=True)]
        table.insert(0, ("device", *heads))
        size = widths(table)
        if sum(size) + len(GAP) * (len(size) - 1) <= columns:
            return align(table)
        if len(heads) <= len(NAMED):
            break
        heads.pop()
    sentences = (f"{launch.device}: {time_line(launch)}" for launch in on)
    return [line for sentence in sentences for line in wrapped(sentence, columns)]


def _row(launch: LaunchProfile) -> dict[str, str]:
    """Return the cells of a device by their heading."""
    facts, bound = summarize(launch), launch.bounds[0] if launch.bounds else None
    access, caches = (facts.access, facts.caches) if facts else (None, None)
    busy = max(facts.busy.items(), key=lambda each: each[1]) if facts and facts.busy else None
    unknown = "no estimate" if bound else time_line(launch)
    return {
        "time": about_text(launch.estimate.ns, launch.within) if launch.estimate else unknown,
        "no faster than": f"{time_text(bound.ns)} ({bound.resource})" if bound else "",
        "busiest": f"{busy[0]} {100 * busy[1]:.0f} %" if busy else "",
        "bytes used": _percent(access.used) if access else "",
        "occupancy": _percent(facts.residency.occupancy) if facts and facts.residency else "",
        "L1 hits": _percent(caches.l1_hit_rate) if caches else "",
        "L2 hits": _percent(caches.l2_hit_rate) if caches else "",
    }

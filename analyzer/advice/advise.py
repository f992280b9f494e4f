"""Advice: run every rule on each launch and device, rank the findings, and make a document of them.

`advise` collects the findings and merges those of one line. `gain_text`, `digest` and
`counted_reuse` serve other reports.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import polars as pl

from ...base.dataclass import dataclass
from ...base.plugins import RULES, extension_names, load_extension, naming_extension
from ...base.sanitize import one_line
from ...models.replay.device.device import Device, load_device
from ...models.replay.device.measured import WITHIN
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.suppose import suppose
from ...traces.reader import LaunchTrace, Trace
from ...traces.schema import TABLES
from .. import rules
from ..counting.bounds import Bound, amount_text, time_text
from ..counting.instruction_mix import NOT_KEPT, NOTHING, did_nothing, kept_nothing
from ..evidence.evidence import LEAST, WHY, WORTH, Evidence, Finding, estimate_with, find_gain
from ..evidence.trial import Rows, Trials
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..report.document import Document, Heading, Item, Next, Note, Section
from ..report.view import View
from ..text.launch_text import NO_LAUNCHES, ROOM, launch_text
from ..time.estimate_text import rough_text
from ..why.search import Searcher


def rule_names() -> tuple[str, ...]:
    """Return the names of all rules, those of other packages last."""
    own = sorted(module.name for module in iter_modules(rules.__path__))
    return (*own, *extension_names(RULES))


def _find(name: str, evidence: Evidence) -> Iterable[Finding]:
    if name not in extension_names(RULES):
        findings: Iterable[Finding] = import_module(f"{rules.__name__}.{name}").find(evidence)
        return findings
    with naming_extension(f"rule {name}"):
        return [*load_extension(RULES, name)(evidence)]


def advise(
    trace: Trace,
    profile: Profile,
    options: ReplayOptions = ReplayOptions(),  # noqa: B008
) -> list[tuple[LaunchProfile, list[Finding]]]:
    """Run every rule on each launch and each device that can run it; largest gain first.

    Equal findings of a rule on one line are merged into the worst of them, with the summed share.
    """
    devices: dict[str, Device] = {}
    memo: dict[tuple[str, bytes], list[Finding]] = {}
    findings: list[tuple[LaunchProfile, list[Finding]]] = []
    read: Rows | None = None
    times = Counter((launch.device, launch.launch.kernel) for launch in profile.launches)
    for launch in profile.launches:
        if launch.refusal:
            continue
        name = launch.device_file or launch.device
        if name not in devices:
            devices[name] = load_device(name, options.set)
        opened = trace.launch(launch.number)
        read = read if read and read.trace is opened else Rows(opened)
        same = name, digest(opened)
        if same not in memo:
            often = times[launch.device, launch.launch.kernel]
            answers = _ask(trace, launch, Trials(read, devices[name], options.dlcm), options, often)
            memo[same] = rank([*answers], launch)
        findings.append((launch, [_move(finding, launch.number) for finding in memo[same]]))
    return findings


def _move(finding: Finding, number: int) -> Finding:
    """Put the launch's number in front of the finding's access identifier."""
    suffix = finding.access.partition(".")[2]
    return replace(finding, access=f"{number}.{suffix}") if suffix else finding


def rank(findings: Sequence[Finding], launch: LaunchProfile) -> list[Finding]:
    """Order findings: the largest gain first, of those within the error the cheapest change first.

    Gains are those of the estimates, where there are some, else of the bounds.
    """
    now = launch.estimate.ns if launch.estimate else launch.bounds[0].ns if launch.bounds else 0.0

    def after(finding: Finding) -> float:
        if launch.estimate:
            return now if finding.estimate is None else finding.estimate
        return now - finding.gain

    ordered = sorted(findings, key=lambda f: (after(f), -f.gain, -(f.share or 0), f.effort))
    if not ordered or not now:
        return ordered
    best = max(after(ordered[0]), MOST * now)
    most = max(best, min(ALIKE * best, now - PART * (now - best)))
    near = [finding for finding in ordered if after(finding) <= most]
    if best >= (1 - WORTH) * now:  # nothing gains: the largest share first
        return ordered
    return [*sorted(near, key=lambda finding: finding.effort), *ordered[len(near) :]]


ALIKE = WITHIN[1] / WITHIN[0]
"""Ratio of two estimates up to which their intervals overlap."""
PART, MOST = 0.5, 0.01
"""Part of the largest gain that a cheaper change needs; least part of the time that remains."""


def _ask(
    trace: Trace, launch: LaunchProfile, trials: Trials, options: ReplayOptions, launches: int
) -> Iterator[Finding]:
    opened, device = trials.trace, trials.device
    worst = Searcher(opened, device, options.dlcm).worst(None)
    numbers = [c for c, t in launch.raw.counts.schema.items() if t == pl.Int64]
    sums = launch.raw.counts.group_by("pc").agg(pl.col(numbers).sum()).sort("pc")
    evidence = Evidence(launch, opened, device, worst, sums, trials, trace, options, launches)
    places = opened.instructions().select(["file", "line"]).to_pylist()
    groups: dict[tuple[str, str], list[Finding]] = {}
    for name in rule_names():
        for finding in _find(name, evidence):
            at = places[finding.pc] if finding.pc is not None else {"line": 0}
            place = f"{at['file']}:{at['line']}" if at["line"] else ""
            where = place or ("" if finding.pc is None else f"pc {finding.pc}")
            named = replace(finding, rule=name, place=where)
            groups.setdefault((name, where), []).append(named)
    every = [finding for group in groups.values() for finding in group]
    for group in groups.values():
        shares = [finding.share for finding in group if finding.share is not None]
        first = max(group, key=lambda finding: finding.share or 0)
        if not shares or sum(shares) >= LEAST:
            saved = [
                (finding.pc, finding.saved)
                for finding in every
                if (finding.rule, finding.change) == (first.rule, first.change)
                and finding.pc is not None
            ]
            is_tried = first.least is not None
            gain = find_gain(evidence, saved, first.only)
            estimate = first.estimate
            if estimate is None and not is_tried:
                estimate = estimate_with(evidence, saved, first.only)
            yield replace(
                first,
                share=sum(shares) if shares else None,
                others=len(group) - 1,
                gain=gain if first.least is None else launch.bounds[0].ns - first.least,
                estimate=estimate,
            )


def _idle(launch: LaunchProfile) -> str:
    """Return why there may be no advice: the launch did nothing, or its results are not kept."""
    counts = launch.raw.counts
    sums = {name: int(counts[name].sum()) for name in counts.columns if name.endswith("_requests")}
    if not launch.launch.kept.is_whole or not kept_nothing(sums):
        return ""
    return f": {NOTHING if did_nothing(sums) else NOT_KEPT}"


def _count_repeats(
    advice: Sequence[tuple[LaunchProfile, Sequence[Finding]]],
) -> Sequence[tuple[LaunchProfile, Sequence[Finding], int]]:
    """Merge launches with equal advice; return one of each group with the group's size."""
    groups: dict[tuple[object, ...], list[tuple[LaunchProfile, Sequence[Finding]]]] = {}
    for launch, findings in advice:
        what = tuple(replace(finding, access="") for finding in findings)
        groups.setdefault((launch.device, launch_text(launch.launch), what), []).append(
            (launch, findings)
        )
    return [(*group[0], len(group)) for group in groups.values()]


def _gather(findings: Sequence[Finding]) -> Sequence[Sequence[Finding]]:
    """Group equal findings, line by line, in order of the first of each group."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.rule, each.evidence, each.change, each.proof), []).append(each)
    return [*groups.values()]


def gain_text(finding: Finding, launch: LaunchProfile) -> str:
    """Return `about 17 us becomes about 6 us`, or by how much the lower bound falls where there is
    no estimate; empty if neither changes.
    """
    now = launch.estimate
    if now and finding.estimate is not None:
        if finding.estimate > (1 - WORTH) * now.ns:
            return ""
        times = rough_text(now.ns), rough_text(finding.estimate)
        if times[0] == times[1]:
            return ""
        return f"about {times[0]} becomes about {times[1]}"
    if now or not launch.bounds or finding.gain < WORTH * launch.bounds[0].ns:
        return ""
    least = launch.bounds[0].ns
    return f"the lower bound falls from {time_text(least)} to {time_text(least - finding.gain)}"


def _head(finding: Finding) -> str:
    part = "" if finding.share is None else f", {100 * finding.share:.0f} % of the launch's traffic"
    return f"{_what(finding)} ({finding.rule}{part})"


def _what(finding: Finding) -> str:
    """Return what was found, and how many other accesses of the line have it too."""
    if not finding.others:
        return finding.what
    return f"{finding.what}; the same for {_accesses(finding.others)}"


def _accesses(others: int) -> str:
    return "another access of this line" if others == 1 else f"{others} other accesses of this line"


CHUNK = 1 << 20


def digest(launch: LaunchTrace) -> bytes:
    """Return a hash of the launch and its tables; launches with equal traces have equal hashes."""
    hasher = blake2b(repr((launch.launch, launch.what_if)).encode())
    for table in sorted(TABLES):
        _add(hasher, launch.folder / f"{table}.arrow")
    launch.check_unchanged()
    return hasher.digest()


def _add(hasher: blake2b, path: Path) -> None:
    """Hash a file in chunks; leave the error for an unreadable file to its reader."""
    hasher.update(path.name.encode())
    try:
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                hasher.update(piece)
    except OSError as error:
        hasher.update(repr(error).encode())


TIMES = 8
"""Requests per byte that memory delivers from which a tile is advised."""
LIMITS = ("L1 data", "L2", "issue slots")
REQUESTED_BYTES = "global_load_bytes_asked"


def counted_reuse(launch: LaunchProfile) -> tuple[tuple[str, str], ...]:
    """Return the advice to tile, with the line that loads most; empty if it would not help."""
    counts = launch.raw.counts
    if launch.limited_by not in LIMITS or not {REQUESTED_BYTES, "dram_bytes_read"} <= {
        *counts.columns
    }:
        return ()
    load_bytes, read = (int(counts[name].sum()) for name in (REQUESTED_BYTES, "dram_bytes_read"))
    if not read or load_bytes < TIMES * read or _is_tiled(counts):
        return ()
    lines = counts.group_by("file", "line").agg(pl.col(REQUESTED_BYTES).sum())
    file, line, _ = lines.sort(REQUESTED_BYTES, "line", descending=[True, False]).row(0)
    amount = amount_text(Bound(REQUESTED_BYTES, 0.0, load_bytes, "bytes"))
    repeats = f"{load_bytes / read:,.0f} times what memory hands out"
    return (
        ("finding", one_line(f"{file}:{line}: loads ask for {amount}, {repeats}")),
        (
            "fix",
            "let each block bring a tile into shared memory once (--advice looks at every access)",
        ),
    )


def _is_tiled(counts: pl.DataFrame) -> bool:
    """Return whether shared memory already delivers more than global memory."""
    return bool(counts["shared_load_bytes_asked"].sum() > counts[REQUESTED_BYTES].sum())


LaunchFindings = Sequence[tuple[LaunchProfile, Sequence[Finding]]]
FORMAT = "cutrace-advice-2"
COLUMNS = (
    *("launch", "kernel", "device", "rule", "place", "what", "others", "share"),
    *("evidence", "change", "proof", "access", "gain_ns", "estimate_ns"),
)
"""`others` counts further instructions of the line with the same finding, `share` is of the
launch's traffic of that kind, 0 to 1, `access` is the argument of `cutrace why --access`, and
`gain_ns` the most by which the lower bound falls, `estimate_ns` the estimated time with the change.
"""
FINDING_COLUMNS = COLUMNS[3:]


def advice_document(advice: LaunchFindings, view: View) -> Document:
    """Return the document of advice: a section per launch and device, an item per finding."""
    return Document(
        view,
        lambda: _sections(advice, view),
        lambda: (
            COLUMNS,
            ((*_launch(p), *_finding(each)) for p, findings in advice for each in findings),
        ),
        lambda: _fields(advice),
    )


def _sections(advice: LaunchFindings, view: View) -> Iterator[Section]:
    is_plain = view.typed and not view.program_suffix and "--launch" not in view.typed
    why = view.typed.replace("cutrace analyze", "cutrace why", 1) if is_plain else WHY
    if view.first:
        yield [Note(view.first)]
    if not advice:
        yield [Note(NO_LAUNCHES)]
        return
    names = {launch.launch.name for launch, _ in advice}
    for launch, findings, times in _count_repeats(advice):
        again = f"  ({times} launches, the first is {launch.number})" if times > 1 else ""
        heading = Heading(launch_text(launch.launch, ROOM, names), launch.device, again)
        nothing = [] if findings else [Note(f"nothing to advise{_idle(launch)}", "  ", "  ")]
        yield [heading, *nothing, *(_item(each, launch, why) for each in _gather(findings))]
    if view.last:
        yield [Next(view.last)]


def _item(group: Sequence[Finding], launch: LaunchProfile, why: str) -> Item:
    """Return the item of equal findings; `why` explains an access."""
    first = group[0]
    hint = f" ({why} --access {first.access})" if first.access else ""
    details = (
        *(("seen", first.evidence + hint), ("change", first.change), ("tried", first.proof)),
        ("gain", gain_text(max(group, key=lambda finding: finding.gain), launch)),
    )
    heads = tuple((finding.place, _head(finding)) for finding in group)
    return Item(heads, tuple(detail for detail in details if detail[1]))


def _fields(advice: LaunchFindings) -> dict[str, object]:
    """Return the launches, each with its list of findings."""
    launches = [
        {
            **dict(zip(COLUMNS, _launch(launch), strict=False)),
            "findings": [dict(zip(FINDING_COLUMNS, _finding(f), strict=True)) for f in findings],
        }
        for launch, findings in advice
    ]
    return {"format": FORMAT, "launches": launches}


def _launch(launch: LaunchProfile) -> tuple[object, ...]:
    return launch.number, launch_text(launch.launch), launch.device


def _finding(finding: Finding) -> tuple[object, ...]:
    """Return the values of COLUMNS."""
    return (
        *(finding.rule, finding.place, finding.what, finding.others, finding.share),
        *(finding.evidence, finding.change, finding.proof, finding.access, finding.gain),
        finding.estimate,
    )


ROWS = 1 << 22
"""Number of accesses from which advice without an explicit request uses counters only."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The first finding on the costliest launch of a profile; `lines` are its label and text."""

    lines: tuple[tuple[str, str], ...]
    place: str = ""
    launch: int = 0
    device: str = ""
    finding: Finding | None = None


def find_fix(trace: Trace, profile: Profile, options: ReplayOptions) -> Fix | None:
    """Return the first finding on the costliest launch, None if there is none.

    A launch with very many accesses is judged by its counters alone.
    """
    running = [launch for launch in profile.launches if not launch.refusal]
    trace = suppose(trace, options.pad, options.align)
    if not running:
        return None
    costliest = max((one for one in running if one.device == running[0].device), key=_cost)
    if trace.launches[costliest.number].count("accesses") > ROWS:
        lines = counted_reuse(costliest)
        return Fix(lines, "", costliest.number, costliest.device) if lines else None
    ((launch, findings),) = advise(trace, replace(profile, launches=(costliest,)), options)
    if not findings:
        return None
    finding, gain = findings[0], gain_text(findings[0], launch)
    place = f"{finding.place}: " if finding.place else ""
    which = f"launch {launch.number}" if len(profile.numbers) > 1 else ""
    on = f"on {launch.device}" if len(profile.devices) > 1 else ""
    of = " ".join(filter(None, (which, on)))
    lines = (
        ("finding", f"{of}{': ' if of else ''}{place}{_what(finding)}"),
        ("fix", f"{finding.change}{'; ' if gain else ''}{gain}"),
    )
    place = finding.place if finding.access else ""
    return Fix(lines, place, launch.number, launch.device, finding)


def _cost(launch: LaunchProfile) -> tuple[float, float]:
    """Return the estimate and the bound of a launch, 0 where unknown."""
    bound = launch.bounds[0].ns if launch.bounds else 0.0
    return (launch.estimate.ns if launch.estimate else bound), bound


def fix_fields(fix: Fix) -> dict[str, object]:
    """Return a fix as fields for programs, those of a finding in `--advice --format json`."""
    where = {"launch": fix.launch, "device": fix.device}
    if not fix.finding:
        return {**where, **dict(fix.lines)}
    return {**where, **dict(zip(FINDING_COLUMNS, _finding(fix.finding), strict=True))}


def advise_here(trace: Trace, profile: Profile, options: ReplayOptions) -> Document:
    """Return the advice on a trace that was replayed with these options."""
    trace = suppose(trace, options.pad, options.align)
    return advice_document(advise(trace, profile, options), profile.view)

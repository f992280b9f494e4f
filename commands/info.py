"""`cutrace info`: the contents of a trace, and whether it is intact."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ..base.errors import CheckFailed
from .options.command_line import device_of, quote
from .options.selection import SELECTION, Selection
from .options.tabular import ReportFormat, plain_view
from .options.verb import Line, TraceFile, flag, shown, verb
from .terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.report.document import Section
    from ..traces.reader import LaunchTrace, Trace


@verb("Look up", "cutrace info scale.cutrace", "cutrace info scale.cutrace --verify")
def info(trace: TraceFile, *, selection: Selection = SELECTION, **options: Any) -> "pl.DataFrame":
    """Show what was recorded; with --verify, check that the trace is valid.

    In Python a frame with a row per launch: its configuration, and the number of recorded rows.
    """
    import polars as pl

    from ..analyzer.text.launch_text import launch_text
    from ..traces.reader import Trace, read_trace

    opened = trace if isinstance(trace, Trace) else read_trace(trace)
    rows = [
        (
            *(one.number, one.launch.name, launch_text(one.launch), one.launch.signature),
            *(list(one.launch.grid), list(one.launch.block), one.launch.blocks),
            *(one.launch.threads, one.launch.shared_static + one.launch.shared_dynamic),
            one.count("accesses"),
        )
        for one in selection.of_trace(opened).launches
    ]
    head: dict[str, Any] = {
        **{"launch": pl.Int64, "kernel": pl.String, "text": pl.String, "signature": pl.String},
        **{"grid": pl.List(pl.Int64), "block": pl.List(pl.Int64), "blocks": pl.Int64},
        **{"threads": pl.Int64, "shared_bytes": pl.Int64, "accesses": pl.Int64},
    }
    return pl.DataFrame(rows, head, orient="row")


@shown(info, is_lazy=True)
def _show(
    answer: "Callable[[], pl.DataFrame]",
    line: Line,
    verify: Annotated[bool, flag("Run all checks of the format.")] = False,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.report import render
    from ..analyzer.report.document import Document, rows_of
    from ..traces.reader import read_trace

    trace, selection = line.values["trace"], line.recording
    opened = read_trace(trace)
    chosen = selection.of_trace(opened).launches
    verdict = _verdict(opened) if verify else ""
    is_long = len(chosen) > MANY and selection == SELECTION

    def sections() -> "Iterator[Section]":
        from ..analyzer.report.document import Next, Table, row

        rows = list(session_rows(opened))
        if is_long:
            rows += [("",), *kernel_rows(opened)]
        else:
            for launch in chosen:
                rows += [("",), *launch_rows(launch)]
        if verdict:
            rows += [("",), ("valid", verdict)]
        yield [Table(("",), tuple(row(*cells) for cells in rows), numbers=False)]
        device = device_of(launch.launch.code for launch in opened.launches)
        yield [Next(f"cutrace analyze {quote(trace)}{device}")]

    document = Document(plain_view(), sections, lambda: rows_of(answer()), name="info")
    return render(document, format)


def _verdict(trace: "Trace") -> str:
    """Return the result of `verify`; raise `CheckFailed` with all findings on damage."""
    from ..traces.verify import STAGES, verify

    with progress("verifying") as share:
        share.expect(trace, sum(len(stage.get("accesses", ())) for stage in STAGES))
        broken = verify(trace)
    if broken:
        raise CheckFailed(f"{trace.label} is not valid:\n" + "\n".join(f"  {b}" for b in broken))
    return "all format checks passed"


Pairs = Iterator[tuple[str, ...]]
Item = TypeVar("Item")

MOST = 100
"""Most listed items of one kind."""

MANY = 12
"""Most launches that are shown individually."""


def _some(items: Sequence[Item]) -> Sequence[Item]:
    return items[:MOST]


def _more(what: str, items: Sized) -> Pairs:
    """Return a row that counts the omitted items, if any."""
    if len(items) > MOST:
        yield "...", f"and {len(items) - MOST} more {what}"


def session_rows(trace: "Trace") -> Pairs:
    """Return rows for the whole trace: size, compilers, sources, copies."""
    manifest = trace.manifest
    files = [path.stat() for path in trace.path.rglob("*") if path.is_file()]
    size = sum({status.st_ino: status.st_size for status in files}.values())  # hard links: once
    yield "trace", f"{trace.label}, format {manifest.format_version}, {size} bytes"
    for compiler in _some(manifest.compilers):
        words = (compiler.name, compiler.version, compiler.target, *compiler.options[:MOST])
        yield "compiler", " ".join(word for word in words if word)
    yield from _more("compilers", manifest.compilers)
    missing = [*dict.fromkeys(line for one in manifest.compilers for line in one.missing)]
    for sentence in _some(missing):
        yield "header", sentence
    yield from _more("headers", missing)
    for name, text in islice(manifest.sources.items(), MOST):
        yield "source", f"{name}, {len(text.splitlines())} lines"
    yield from _more("sources", manifest.sources)
    if manifest.fault:
        yield "fault", f"after {len(trace.launches)} launches: {manifest.fault}"
    if manifest.left_out:
        yield "left out", manifest.left_out
    calls = Counter(event.name for event in manifest.events if event.kind == "library")
    if len(calls) > 1:
        functions = f"{len(calls)} functions, {calls.total()} calls"
        yield "libraries", f"{functions}: computed on the host, their kernels are not counted"
    moves = [event for event in manifest.events if event.kind in ("copy", "set")]
    for event in _some(moves):
        yield event.kind, f"{event.bytes} bytes {event.direction} {event.array}".rstrip()
    yield from _more("copies and sets", moves)
    for name, count in _some([*calls.items()]):
        yield "library", f"{name}, {count} times: computed on the host, its kernels are not counted"
    yield from _more("calls of libraries", [*calls])


def kernel_rows(trace: "Trace") -> Pairs:
    """Return rows of launches grouped by kernel, most threads first: count, numbers, shapes."""
    from ..analyzer.text.launch_text import ROOM, launch_text, ranges_text

    groups: dict[str, list[LaunchTrace]] = {}
    for one in trace.launches:
        groups.setdefault(one.launch.signature or one.launch.kernel, []).append(one)
    yield (
        "launches",
        f"{len(trace.launches)} of {len(groups)} kernels; --launch N shows one in full",
    )
    for name, launches in sorted(groups.items(), key=lambda group: -_threads(group[1])):
        most = max(launches, key=lambda one: (_threads([one]), -one.number))
        different = len({one.place for one in launches})
        yield ("",)
        yield "kernel", name
        yield "launches", f"{len(launches)}, {different} of them different, {_spans(launches)}"
        yield "threads", f"{_threads(launches)} in all"
        places = dict.fromkeys(one.launch.called_at for one in launches if one.launch.called_at)
        if places:
            yield "called at", ", ".join([*places][:MANY])
        ranges = dict.fromkeys(ranges_text(one.launch) for one in launches if one.launch.ranges)
        if ranges:
            yield "in range", ", ".join([*ranges][:MANY])
        yield f"launch {most.number}", launch_text(most.launch, ROOM)


def _threads(launches: "Sequence[LaunchTrace]") -> int:
    return sum(one.launch.blocks * one.launch.threads for one in launches)


def _spans(launches: "Sequence[LaunchTrace]") -> str:
    """Return the first and last launch number."""
    first, last = launches[0].number, launches[-1].number
    return f"number {first}" if first == last else f"the first is number {first}, the last {last}"


def launch_rows(trace: "LaunchTrace") -> Pairs:
    """Return rows for one launch: kernel, accessible arrays, assembler's facts, table sizes."""
    from ..analyzer.text.launch_text import ROOM, kept_text, launch_text, ranges_text
    from ..traces.out_of_bounds import outside_text
    from ..traces.schema import TABLES

    launch = trace.launch
    yield f"launch {trace.number}", launch_text(launch, ROOM)
    yield "kernel", launch.signature or launch.kernel
    if launch.called_at:
        yield "called at", launch.called_at
    if launch.ranges:
        yield "in range", ranges_text(launch)
    for array in _some(launch.arrays):
        space = array.space.name.lower()
        origin = f", allocated at {array.made_at}" if array.made_at else ""
        yield (
            "array",
            f"{array.name}: {array.bytes} bytes of {space} memory at {array.offset}{origin}",
        )
    yield from _more("arrays", launch.arrays)
    for resource in launch.resources:
        spilled = resource.spill_stores + resource.spill_loads
        yield (
            resource.arch,
            f"{resource.registers} registers, {resource.shared_bytes} bytes of shared memory,"
            f" {resource.local_bytes} local, {resource.constant_bytes} constant, {spilled} spilled",
        )
    yield from (("kept", sentence) for sentence in kept_text(launch))
    if launch.outside:
        sentences = list(outside_text(launch, trace.instructions()))
        yield from (("outside", sentence) for _, sentence in _some(sentences))
        yield from _more("lines", sentences)
    yield "rows", ", ".join(f"{trace.count(name)} {name}" for name in TABLES)

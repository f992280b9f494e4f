"""`cutrace info`: what is in a trace, and whether it is sound."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CheckFailed
from ._quote import quote

if TYPE_CHECKING:
    from ..traces.reader import LaunchTrace, Trace

PANEL = "Look up"


def command(
    trace: Annotated[Path, typer.Argument(help="A trace")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check all that the format promises.")
    ] = False,
) -> str:
    """Show what was recorded; with --verify, check that the trace is sound."""
    from ..analyzer.align import align
    from ..traces.reader import read_trace

    opened = read_trace(trace)
    rows = list(_session(opened))
    for launch in opened.launches:
        rows += _launch(launch)
    if verify:
        rows += [("",), ("sound", _verdict(opened))]
    return "\n".join((*align(rows), "", f"next: cutrace analyze {quote(trace)}"))


def _verdict(trace: "Trace") -> str:
    """What `verify` found; `CheckFailed` with all of it if the trace is not sound."""
    from ..traces.verify import verify

    if broken := verify(trace):
        raise CheckFailed(f"{trace.path} is not sound:\n" + "\n".join(f"  {b}" for b in broken))
    return "every promise of the format holds"


def _session(trace: "Trace") -> Iterator[tuple[str, ...]]:
    """The trace as a whole."""
    manifest = trace.manifest
    size = sum(path.stat().st_size for path in trace.path.rglob("*") if path.is_file())
    yield "trace", f"{trace.path}, format {manifest.format_version}, {size} bytes"
    for compiler in manifest.compilers:
        words = (compiler.name, compiler.version, compiler.target, *compiler.options)
        yield "compiler", " ".join(word for word in words if word)
    for name, text in manifest.sources.items():
        yield "source", f"{name}, {len(text.splitlines())} lines"
    for event in manifest.events:
        if event.kind != "launch":
            yield event.kind, f"{event.bytes} bytes {event.direction} {event.array}".rstrip()


def _launch(trace: "LaunchTrace") -> Iterator[tuple[str, ...]]:
    """One launch."""
    from ..analyzer.launch_text import launch_text
    from ..traces.schema import TABLES

    launch = trace.launch
    yield ("",)
    yield f"launch {trace.number}", launch_text(launch)
    yield "kernel", launch.signature or launch.kernel
    for array in launch.arrays:
        space = array.space.name.lower()
        yield "array", f"{array.name}: {array.bytes} bytes of {space} memory at {array.offset}"
    for found in launch.resources:
        spilled = found.spill_stores + found.spill_loads
        yield (
            found.arch,
            f"{found.registers} registers, {found.shared_bytes} bytes of shared memory,"
            f" {found.local_bytes} local, {found.constant_bytes} constant, {spilled} spilled",
        )
    yield "rows", ", ".join(f"{trace.count(name)} {name}" for name in TABLES)

"""What is in a trace, as pairs of a word and what it says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..traces.reader import LaunchTrace, Trace

Pairs = Iterator[tuple[str, ...]]


def session_rows(trace: "Trace") -> Pairs:
    """The trace as a whole: its size, who compiled it, its sources, the copies."""
    manifest = trace.manifest
    size = sum(path.stat().st_size for path in trace.path.rglob("*") if path.is_file())
    yield "trace", f"{trace.path}, format {manifest.format_version}, {size} bytes"
    for compiler in manifest.compilers:
        words = (compiler.name, compiler.version, compiler.target, *compiler.options)
        yield "compiler", " ".join(word for word in words if word)
    for name, text in manifest.sources.items():
        yield "source", f"{name}, {len(text.splitlines())} lines"
    if manifest.fault:
        yield "fault", f"after {len(trace.launches)} launches: {manifest.fault}"
    for event in manifest.events:
        if event.kind != "launch":
            yield event.kind, f"{event.bytes} bytes {event.direction} {event.array}".rstrip()


def launch_rows(trace: "LaunchTrace") -> Pairs:
    """One launch: the kernel, what it could reach, what the assembler said, the tables' rows."""
    from ..analyzer.kept_text import kept_text
    from ..analyzer.launch_text import launch_text
    from ..traces.outside import outside_text
    from ..traces.schema import TABLES

    launch = trace.launch
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
    yield from (("kept", sentence) for sentence in kept_text(launch))
    if launch.outside:
        told = outside_text(launch, trace.instructions())
        yield from (("outside", sentence) for _, sentence in told)
    yield "rows", ", ".join(f"{trace.count(name)} {name}" for name in TABLES)

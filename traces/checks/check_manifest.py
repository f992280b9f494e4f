"""Checks of the trace as a whole: its events and files."""

from collections.abc import Iterator

from ..folder.folder import MANIFEST
from ..reader import Trace
from ..schema import TABLES, Event, Launch, Manifest

_DIRECTIONS = {"copy": ("HtoD", "DtoH", "DtoD"), "set": ("",), "launch": ("",), "library": ("",)}
WARPS = 1 << 32
"""Row checks number a launch's warps with 32 bits; no launch that was executed has more."""


def check_events(manifest: Manifest) -> Iterator[str]:
    """Launch numbers appear once each, in order; kinds, directions and sizes are known."""
    numbers = [event.launch for event in manifest.events if event.kind == "launch"]
    if numbers != list(range(len(manifest.launches))):
        some = f"{numbers[:20]}{' and more' * (len(numbers) > 20)}"
        yield f"events launch {some}, but there are {len(manifest.launches)} launches"
    for index, event in enumerate(manifest.events):
        yield from (f"event {index}: {finding}" for finding in _check_event(event))


def _check_event(event: Event) -> Iterator[str]:
    if event.kind not in _DIRECTIONS:
        yield f"kind `{event.kind}`, expected {', '.join(_DIRECTIONS)}"
    elif event.direction not in _DIRECTIONS[event.kind]:
        yield f"direction `{event.direction}` of a {event.kind}"
    if event.bytes < 0:
        yield f"{event.bytes} bytes"
    if event.kind != "launch" and event.launch != -1:
        yield f"a {event.kind} with launch {event.launch}"
    if bool(event.name) != (event.kind == "library"):
        yield f"a {event.kind} with the name `{event.name}`"


def check_folders(trace: Trace) -> Iterator[str]:
    """The folder holds the manifest, one folder a launch with its tables, and nothing else."""
    expected = {MANIFEST, *(str(launch.number) for launch in trace.launches)}
    for path in sorted(trace.path.iterdir()):
        if path.name not in expected:
            yield f"{path.name} is no part of the trace"
    tables = {f"{name}.arrow" for name in TABLES}
    for launch in trace.launches:
        strange = sorted({path.name for path in launch.folder.iterdir()} - tables)
        yield from (f"{launch.number}/{name} is no part of the trace" for name in strange)


def check_warps(launch: Launch) -> Iterator[str]:
    """Its rows can be checked."""
    if launch.blocks * launch.warps >= WARPS:
        yield f"{launch.blocks} blocks of {launch.warps} warps: too many to check their rows"

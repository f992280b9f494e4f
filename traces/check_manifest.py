"""Checks of the manifest by itself: events, launches, arrays."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from .folder import MANIFEST
from .reader import Trace
from .recorded import FAR
from .schema import (
    ADDRESS_MODES,
    FILTER_MODES,
    READ_MODES,
    TABLES,
    Array,
    Event,
    Launch,
    Manifest,
    Space,
    Texture,
)

_FORMAT = re.compile(r"([ui](8|16|32)|f(16|32))(x[24])?")
_DIRECTIONS = {"copy": ("HtoD", "DtoH", "DtoD"), "set": ("",), "launch": ("",)}
WARPS = 1 << 32
"""Row checks number a launch's warps with 32 bits; no launch that was executed has more."""


def check_events(manifest: Manifest) -> Iterator[str]:
    """Launch numbers appear once each, in order; kinds, directions and sizes are known."""
    numbers = [event.launch for event in manifest.events if event.kind == "launch"]
    if numbers != list(range(len(manifest.launches))):
        yield f"events launch {numbers}, but there are {len(manifest.launches)} launches"
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


def check_launch(manifest: Manifest, launch: Launch) -> Iterator[str]:
    """Grid and block are positive, sizes are not negative, and names lead somewhere."""
    if min(*launch.grid, *launch.block) < 1:
        yield f"grid {launch.grid}, block {launch.block}: every size is at least 1"
    elif launch.blocks * launch.warps >= WARPS:
        yield f"{launch.blocks} blocks of {launch.warps} warps: too many to check their rows"
    for name in ("shared_static", "shared_dynamic", "local_bytes", "max_threads", "min_blocks"):
        if getattr(launch, name) < 0:
            yield f"{name} is {getattr(launch, name)}"
    if launch.source and launch.source not in manifest.sources:
        yield f"source `{launch.source}` is not among the manifest's sources"
    names = {array.name for array in launch.arrays}
    for texture in launch.textures:
        if texture.array and texture.array not in names:
            yield f"texture `{texture.name}` lies over array `{texture.array}`, which is not there"
    for arch, count in Counter(resources.arch for resources in launch.resources).items():
        if count > 1:
            yield f"resources of {arch} are given {count} times"


def check_textures(launch: Launch) -> Iterator[str]:
    """Textures have texels, of one to three dimensions, and modes that exist."""
    for texture in launch.textures:
        yield from (f"texture `{texture.name}`: {finding}" for finding in _check_texture(texture))


def _check_texture(texture: Texture) -> Iterator[str]:
    if not _FORMAT.fullmatch(texture.format):
        yield f"unknown format `{texture.format}`"
    if not 1 <= len(texture.extent) <= 3 or min(texture.extent) < 1 or texture.layers < 0:
        yield f"extent {texture.extent}, {texture.layers} layers"
    modes = (*texture.address_mode, texture.filter_mode, texture.read_mode)
    if len(texture.address_mode) != len(texture.extent):
        yield f"{len(texture.address_mode)} address modes of {len(texture.extent)} dimensions"
    for mode in modes:
        if mode not in (*ADDRESS_MODES, *FILTER_MODES, *READ_MODES):
            yield f"unknown mode `{mode}`"


def check_arrays(launch: Launch) -> Iterator[str]:
    """Arrays have sane sizes; those in global and constant memory and surfaces do not overlap."""
    for array in launch.arrays:
        if min(array.offset, array.bytes, array.itemsize, array.pitch, *array.shape) < 0:
            yield f"array `{array.name}` has a negative size or address"
        if array.offset + array.bytes > FAR:
            yield f"array `{array.name}` ends beyond 2**62"
    for space in (Space.GLOBAL, Space.CONST, Space.SURFACE):
        arrays = sorted((a for a in launch.arrays if a.space == space), key=_offset)
        for left, right in pairwise(arrays):
            if left.offset + left.bytes > right.offset:
                yield f"arrays `{left.name}` and `{right.name}` overlap"


def _offset(array: Array) -> int:
    return array.offset

"""Checks of a launch's manifest entry: sizes, names, modes. They read no table.

They run whenever a trace is read, so that impossible sizes are never used to allocate or compute.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from operator import attrgetter, gt

from .schema import ADDRESS_MODES, FILTER_MODES, READ_MODES, Array, Launch, Manifest, Space, Texture

FAR = 1 << 62
"""First address or size that is beyond any array."""

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = 1024
"""Maximum threads of a block on any compute capability (CUDA C++ Programming Guide, "Compute
Capabilities")."""

MOST_COUNTED = 1 << 60
"""Maximum threads of a launch: counters have 64 bits."""

MOST_ARGUMENTS = 32764
"""Maximum bytes of arguments on any device (CUDA C++ Programming Guide, "Kernel Parameters")."""

PREFERENCES = frozenset({"", "prefer_shared", "prefer_l1", "equal", *map(str, range(101))})
_SIZES = (
    *("shared_static", "shared_dynamic", "local_bytes", "max_threads", "min_blocks"),
    "parameter_bytes",
)
_FORMAT = re.compile(r"([ui](8|16|32)|f(16|32))(x[24])?")
_ARCH = re.compile(r"sm_\d{2,3}[a-z]?")


def first_finding(manifest: Manifest) -> str:
    """Return the first error of any launch, or an empty text."""
    arrays: tuple[Array, ...] | None = None
    for number, launch in enumerate(manifest.launches):
        findings = chain(
            check_launch(manifest, launch),
            () if launch.arrays is arrays else check_arrays(launch),
            check_textures(launch),
            check_kept(launch),
            check_outside(launch),
        )
        for finding in islice(findings, 1):
            return f"launch {number} ({launch.kernel[:60]}): {finding}"
        arrays = launch.arrays  # consecutive launches mostly share arrays
    return ""


def check_launch(manifest: Manifest, launch: Launch) -> Iterator[str]:
    """Check that grid and block are positive, sizes are not negative, and names resolve."""
    if min(*launch.grid, *launch.block) < 1:
        yield f"grid {launch.grid}, block {launch.block}: every size is at least 1"
    elif any(map(gt, launch.grid, MOST_BLOCKS)) or launch.threads > MOST_THREADS:
        yield (
            f"grid {launch.grid}, block {launch.block}: no device takes more blocks than "
            f"{MOST_BLOCKS}, nor blocks of more than {MOST_THREADS} threads"
        )
    elif launch.blocks * launch.threads > MOST_COUNTED:
        yield f"{launch.blocks} blocks of {launch.threads} threads: too many to count them"
    if launch.cluster and not _has_whole_clusters(launch):
        yield f"grid {launch.grid} is not made of whole clusters of {launch.cluster[:4]} blocks"
    if launch.prefers not in PREFERENCES:
        yield f"prefers is {launch.prefers[:20]!r}: a percentage or a cache configuration"
    if list(launch.waiting) != sorted({*launch.waiting}) or min(launch.waiting, default=0) < 0:
        yield f"waiting is {launch.waiting[:4]}: basic blocks are numbers that rise from 0"
    for name in _SIZES:
        if not 0 <= getattr(launch, name) < FAR:
            yield f"{name} is {getattr(launch, name)}"
    if len(launch.arguments) > MOST_ARGUMENTS:
        yield f"{len(launch.arguments)} arguments; no kernel takes more than {MOST_ARGUMENTS}"
    if launch.source and launch.source not in manifest.sources:
        yield f"source `{launch.source}` is not among the manifest's sources"
    names = {array.name for array in launch.arrays}
    for texture in launch.textures:
        if texture.array and texture.array not in names:
            yield f"texture `{texture.name}` lies over array `{texture.array}`, which is not there"
    for arch, count in Counter(resources.arch for resources in launch.resources).items():
        if not _ARCH.fullmatch(arch):
            yield f"resources of `{arch[:60]}`, expected an architecture as in sm_75"
        if count > 1:
            yield f"resources of {arch} are given {count} times"


def _has_whole_clusters(launch: Launch) -> bool:
    if len(launch.cluster) != 3 or min(launch.cluster) < 1:
        return False
    return not any(size % part for size, part in zip(launch.grid, launch.cluster, strict=True))


def check_textures(launch: Launch) -> Iterator[str]:
    """Check that textures have texels, one to three dimensions, and known modes."""
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
    """Check that arrays have sane sizes; those in global and constant memory and surfaces must not
    overlap.
    """
    for array in launch.arrays:
        if min(array.offset, array.bytes, array.itemsize, array.pitch, *array.shape) < 0:
            yield f"array `{array.name}` has a negative size or address"
        if array.offset + array.bytes > FAR:
            yield f"array `{array.name}` ends beyond 2**62"
    for space in (Space.GLOBAL, Space.CONST, Space.SURFACE):
        arrays = sorted((a for a in launch.arrays if a.space == space), key=attrgetter("offset"))
        for first, right in pairwise(arrays):
            if first.offset + first.bytes > right.offset:
                yield f"arrays `{first.name}` and `{right.name}` overlap"


def check_kept(launch: Launch) -> Iterator[str]:
    """Check that ranges ascend, and that the weights of sampled blocks add up to the grid."""
    selection = launch.kept
    for first, last in (*selection.blocks, *selection.warps):
        if not 0 <= first <= last:
            yield f"kept from {first} to {last}"
    sample = selection.sample
    if list(sample.blocks) != sorted({*sample.blocks}) or len(sample.weights) != len(sample.blocks):
        yield "the blocks of its sample do not rise, or have not a weight each"
    if sample.blocks and (min(sample.weights) < 1 or sum(sample.weights) != launch.blocks):
        yield f"the blocks of its sample stand for {sum(sample.weights)}, not for {launch.blocks}"
    if any(not 0 <= block < launch.blocks for block in sample.blocks):
        yield "its sample has blocks that the grid has not"
    if list(sample.ends) != sorted({*sample.ends} & {*sample.blocks}):
        yield "the ends of its sample are not among its blocks"


def check_outside(launch: Launch) -> Iterator[str]:
    """Check that entries are unique per instruction, sorted by pc, with block and thread in
    range."""
    if any(one.pc >= other.pc for one, other in pairwise(launch.outside)):
        yield "accesses outside of arrays: their pcs do not rise"
    for outside in launch.outside:
        is_inside = 0 <= outside.block < launch.blocks and 0 <= outside.thread < launch.threads
        if not is_inside or outside.pc < 0 or outside.lanes < 1 or outside.address < 0:
            yield f"accesses outside of arrays: of pc {outside.pc}, there is no such access"

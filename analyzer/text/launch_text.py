"""Format a launch in CUDA syntax, its NVTX ranges, kernel names, links to source lines, and what a
partial recording lacks."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...base.sanitize import one_line
from ...traces.schema import Kept, Launch, Range

ROOM, SHOWN = 240, 48
"""Maximum characters of a kernel's name and of an argument in reports for people: templates make
names of thousands. Formats for programs have all of them."""


_HEX = re.compile(r"(?:[0-9a-f]{8}){3,}")
WORDS = 3
"""Words of a structure that are shown."""


def _shown(value: object) -> str:
    """Return a value in at most SHOWN characters; the bytes of a structure as numbers.

    >>> _shown("0000200007000000300c0000000000000400000000000000" + "0" * 32)
    '{0x700200000, 3120, 4, ... 40 bytes}'
    """
    text = str(value)
    if isinstance(value, str) and _HEX.fullmatch(text):
        return _structure(bytes.fromhex(text))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _structure(data: bytes) -> str:
    """Return the first words of a structure; what may be an address is hexadecimal."""
    size = 8 if len(data) % 8 == 0 else 4
    words = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
    shown = [f"{word:#x}" if word >> 32 else str(word) for word in words[:WORDS]]
    return f"{{{', '.join(shown)}{f', ... {len(data)} bytes' if len(words) > WORDS else ''}}}"


def launch_text(launch: Launch, width: int = 0) -> str:
    """Return `reverse<<<1024, 256>>>(out, in)`; scalars with their values, `n=1024`.

    With `width`, a longer name is shortened to so many characters, and a value to SHOWN.
    """
    name = short_name(launch.name, width) if width else launch.name
    shape = [_extent(launch.grid), _extent(launch.block)]
    if launch.shared_dynamic:
        shape.append(str(launch.shared_dynamic))
    values = ((a.name, _shown(a.value) if width else a.value) for a in launch.arguments)
    arguments = (name if name == value else f"{name}={value}" for name, value in values)
    return one_line(f"{name}<<<{', '.join(shape)}>>>({', '.join(arguments)})")


def ranges_text(launch: Launch) -> str:
    """Return the enclosing NVTX ranges of the call, as `step 3 / solve`; empty if none."""
    return one_line(" / ".join(launch.ranges))


def _extent(extent: tuple[int, ...]) -> str:
    """Return `256` or `(16, 16)`: CUDA's dim3 without trailing ones."""
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return str(extent[0]) if len(extent) == 1 else str(extent)


NAME_WIDTH = 48
"""Maximum characters of a name in a table."""


def short_name(name: str, width: int = NAME_WIDTH) -> str:
    """Return the name without namespaces and, if it is too long, without template arguments.

    >>> short_name("reverse<float, 4>")
    'reverse<float, 4>'
    >>> short_name("cub::detail::reduce::DeviceReduceKernel<cub::detail::policy, float, int>")
    'DeviceReduceKernel<...>'
    >>> short_name("thrust::system::cuda::detail::__parallel_for::kernel<4>", 30)
    'kernel<4>'
    """
    if len(name) <= width:
        return name
    bare, angle, arguments = name.partition("<")
    last = bare.rpartition("::")[2]
    whole = f"{last}{angle}{arguments}"
    if len(whole) > width and angle:
        whole = f"{last}<...>"
    return whole if len(whole) <= width else f"{whole[: width - 3]}..."


_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:cu|cuh|h|hpp|ptx|py)):(\d+)")


def source_links(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin and end of each FILE:LINE in a text, and the address of the local file.

    A file that does not exist here has no link.
    """
    for match in _PLACE.finditer(text):
        path = Path(match[1])
        if path.is_file():
            yield match.start(), match.end(), f"{path.resolve().as_uri()}#L{match[2]}"


def kept_text(launch: Launch) -> Iterator[str]:
    """Yield a sentence per restriction on what was recorded of a launch; none if it is complete."""
    if launch.partly_written:
        yield (
            f"{', '.join(launch.partly_written)}: earlier, only a sample of blocks wrote here:"
            " code that depends on these values may run differently in a whole run"
        )
    if launch.kept.is_whole:
        return
    yield from _restrictions(launch)
    if launch.kept.rows and not launch.kept.has_accesses:
        yield "what caches hold follows from all accesses: their counters are empty"


def _restrictions(launch: Launch) -> Iterator[str]:
    coverage = launch.kept
    if not coverage.rows:
        yield "not recorded: the launch was run, but left out of the trace"
        return
    yield from _sample_text(coverage, launch.blocks)
    if coverage.blocks:
        yield f"recorded and counted: blocks {_ranges(coverage.blocks)} of {launch.blocks} alone"
    if coverage.warps:
        yield (
            f"recorded and counted: warps {_ranges(coverage.warps)} of {launch.warps} a block alone"
        )
    if coverage.lines:
        yield f"recorded: accesses of lines {', '.join(coverage.lines)} alone"
    if coverage.spaces:
        names = (space.name.lower() for space in coverage.spaces)
        yield f"recorded: accesses to {', '.join(names)} memory alone"
    if not coverage.control:
        yield "not recorded: which instructions the warps ran"


def _sample_text(coverage: Kept, blocks: int) -> Iterator[str]:
    drawn = len(coverage.sample.blocks)
    if not drawn:
        return
    yield (
        f"estimated from {drawn} of {blocks} blocks (seed {coverage.sample.seed}): 95 %"
        " confidence intervals in brackets"
    )
    if coverage.sample.all_ran:
        yield f"all blocks were run, for they depend on one another: {coverage.sample.all_ran}"
    else:
        yield f"the other {blocks - drawn} blocks were not run, and what they write is missing"


def _ranges(ranges: Sequence[Range]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)

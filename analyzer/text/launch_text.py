"""Format a launch in CUDA syntax, its NVTX ranges, kernel names, links to source lines, and what a
partial recording lacks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...base.sanitize import one_line
from ...traces.schema import Kept, Launch, Manifest, Range
from .kernel_name import ELSE, NAME_WIDTH, name_apart, short_name

ROOM, SHOWN = 100, 48
"""Maximum characters of a launch and of an argument in reports for people: a line. Formats for
programs have all of them."""

NO_LAUNCHES = "no launches: no kernel ran, nothing is counted; `cutrace info TRACE` shows what did"

_HEX = re.compile(r"(?:[0-9a-f]{8}){3,}")
WORDS = 3
"""Words of a structure that are shown."""


def _shown(value: object, type_: str = "") -> str:
    """Return a value in at most SHOWN characters; the bytes of a structure as numbers, those of a
    large one as its type.

    >>> _shown("0000200007000000300c0000000000000400000000000000", "Shape")
    '{0x700200000, 3120, 4}'
    >>> _shown("0" * 80, "typename gemm::Kernel<float, 4>::Params")
    '{Kernel<float, 4>::Params, 40 bytes}'
    """
    text = str(value)
    if isinstance(value, str) and _HEX.fullmatch(text):
        return _structure(bytes.fromhex(text), type_)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _structure(data: bytes, type_: str) -> str:
    """Return the first words of a structure; what may be an address is hexadecimal."""
    size = 8 if len(data) % 8 == 0 else 4
    words = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
    if len(words) > WORDS and type_ not in ("", "b8"):  # of PTX, which has no structures
        return f"{{{short_name(type_.removeprefix('typename '), SHOWN // 2)}, {len(data)} bytes}}"
    shown = [f"{word:#x}" if word >> 32 else str(word) for word in words[:WORDS]]
    return f"{{{', '.join(shown)}{f', ... {len(data)} bytes' if len(words) > WORDS else ''}}}"


def launch_text(launch: Launch, width: int = 0, others: Iterable[str] = ()) -> str:
    """Return `reverse<<<1024, 256>>>(out, in)`; scalars with their values, `n=1024`.

    With `width` it has about so many characters: names of kernels and structures are shortened, so
    far as the kernel's differs from `others`, and arguments that do not fit are left out.
    """
    shape = [_extent(launch.grid), _extent(launch.block)]
    if launch.shared_dynamic:
        shape.append(str(launch.shared_dynamic))
    grid = f"<<<{', '.join(shape)}>>>"
    values = (
        (each.name, _shown(each.value, each.type) if width else each.value)
        for each in launch.arguments
    )
    arguments = [name if name == value else f"{name}={value}" for name, value in values]
    if not width:
        return one_line(f"{launch.name}{grid}({', '.join(arguments)})")
    most = max(NAME_WIDTH, width - len(f"{grid}({', '.join(arguments)})"))
    name = name_apart(launch.name, others, most)
    room, shown = width - len(f"{name}{grid}()"), arguments
    for many in range(len(arguments) - 1, 0, -1):
        if len(", ".join(shown)) <= room:
            break
        shown = [*arguments[:many], ELSE]
    return one_line(f"{name}{grid}({', '.join(shown)})")


def ranges_text(launch: Launch) -> str:
    """Return the enclosing NVTX ranges of the call, as `step 3 / solve`; empty if none."""
    return one_line(" / ".join(launch.ranges))


def _extent(extent: tuple[int, ...]) -> str:
    """Return `256` or `(16, 16)`: CUDA's dim3 without trailing ones."""
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return str(extent[0]) if len(extent) == 1 else str(extent)


_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:cu|cuh|h|hpp|ptx|py)):(\d+)")


def source_links(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin and end of each FILE:LINE in a text, and the address of the local file.

    A file that does not exist here has no link.
    """
    for match in _PLACE.finditer(text):
        path = Path(match[1])
        if path.is_file():
            yield match.start(), match.end(), f"{path.resolve().as_uri()}#L{match[2]}"


def host_text(manifest: Manifest) -> str:
    """Return which part of a program the host computed; empty if every kernel is in the trace."""
    calls = Counter(event.name for event in manifest.events if event.kind == "library")
    if not calls:
        return ""
    count, kernels = len(calls), len({launch.kernel for launch in manifest.launches})
    what = next(iter(calls)) if count == 1 else f"{count} of {count + kernels} operators"
    times = f"{calls.total():,} call{'s' * (calls.total() != 1)}"
    whose = "its" if count == 1 else "their"
    return f"{what} ({times}) computed on the host: {whose} kernels are not counted"


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

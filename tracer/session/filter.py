"""Parse a session's recording options into ranges, names and spaces."""

import operator
import re
from collections.abc import Callable
from typing import TypeVar

from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces.schema import Range, Space
from .record_options import RecordOptions

Read = TypeVar("Read")
_SPACES = {space.name.lower(): space for space in Space}


@dataclass(frozen=True, slots=True)
class Fraction:
    """Number of blocks to draw: `count`, or `percent` of the grid if that is not 0."""

    count: int = 0
    percent: float = 0.0

    def of(self, blocks: int) -> int:
        """Return how many of `blocks` to draw, at least 2 and at most all; 0 if none requested."""
        sample_size = -int(-blocks * self.percent // 100) if self.percent else self.count
        return min(max(sample_size, 2), blocks) if sample_size else 0


@dataclass(frozen=True, slots=True)
class Filter:
    """Restrictions of the recording; by default none. An empty collection does not restrict."""

    kernels: tuple[str, ...] = ()
    launches: tuple[Range, ...] = ()
    blocks: tuple[Range, ...] = ()
    warps: tuple[Range, ...] = ()
    lines: tuple[str, ...] = ()
    spaces: tuple[Space, ...] = ()
    control: bool = True
    sample: Fraction = Fraction()
    seconds: float = 0.0
    seed: int = 0
    max_bytes: int = 0


def read_filter(options: RecordOptions) -> Filter:
    """Parse the recording options; CutraceError for malformed or contradictory ones."""
    sample, size = options.sample_blocks, options.max_trace_size
    return Filter(
        _only("kernels", options.only_kernels, _read_words),
        _only("launches", options.only_launches, _read_ranges),
        _only("blocks", options.only_blocks, _read_ranges),
        _only("warps", options.only_warps, _read_ranges),
        _only("lines", options.only_lines, _read_words),
        _only("spaces", options.only_spaces, _read_spaces),
        options.control,
        Fraction() if sample is None else read_fraction(sample),
        0.0 if options.within is None else _read_seconds(options.within, sample),
        operator.index(options.sample_seed),
        0 if size is None else bytes_of(size, "max_trace_size"),
    )


def _only(
    name: str, words: str | None, read: Callable[[str, str], tuple[Read, ...]]
) -> tuple[Read, ...]:
    return () if words is None else read(name, words)


def _read_words(name: str, words: str) -> tuple[str, ...]:
    parts = tuple(word.strip() for word in _split(words) if word.strip())
    if not parts:
        raise CutraceError(f"only {name} {words!r}: nothing is named")
    return parts


def _split(text: str) -> list[str]:
    """Split at commas outside a template's angle brackets: `scale<float, 4>, copy`."""
    return re.split(r",(?![^<]*>)", text)


def _read_ranges(name: str, words: str) -> tuple[Range, ...]:
    """Parse `3`, `0-7` and so on."""
    ranges = []
    for word in _read_words(name, words):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise CutraceError(f"only {name} {word}: expected numbers, as in 3 or 0-7")
        ranges.append((first, last))
    return tuple(ranges)


def _read_spaces(name: str, words: str) -> tuple[Space, ...]:
    spaces = set()
    for word in _read_words(name, words):
        if word not in _SPACES:
            space_names = ", ".join(_SPACES)
            raise CutraceError(
                f"only {name} {word}{nearest(word, _SPACES)}: expected {space_names}"
            )
        spaces.add(_SPACES[word])
    return tuple(sorted(spaces))


def _read_seconds(text: str, sample: str | None) -> float:
    """Parse the seconds of a launch: `5`, `5s`, `0.5`."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) *s?", text.strip())
    if sample is not None:
        raise CutraceError("within and sample_blocks both say how many blocks to draw: give one")
    if match is None or not float(match[1]):
        raise CutraceError(f"within is {text!r}: expected seconds, as in 5s")
    return float(match[1])


def read_fraction(text: int | str) -> Fraction:
    """Parse a number of blocks or a percentage: `100`, `1%`, `0.5%`.

    >>> read_fraction("0.5%").of(1000), read_fraction(40).of(1000), read_fraction("1%").of(30)
    (5, 40, 2)
    """
    match = re.fullmatch(r"(\d+)|(\d+(?:\.\d*)?|\.\d+) *%", str(text).strip())
    if match and match[1] and int(match[1]) > 1:
        return Fraction(count=int(match[1]))
    if match and match[2] and 0 < float(match[2]) <= 100:
        return Fraction(percent=float(match[2]))
    raise CutraceError(
        f"sample_blocks is {text!r}: expected a number of blocks, at least 2, for one says nothing"
        " of how blocks differ, or a part of the grid as in 1%"
    )


def check_filter(row_filter: Filter, launched: set[str], lines: set[str], launches: int) -> None:
    """Raise CutraceError if a kernel, line or launch in the filter never occurred."""
    for name in row_filter.kernels:
        if name not in launched:
            close = nearest(name, sorted(launched)) or "; no kernel was"
            raise CutraceError(f"only kernels {name}: no such kernel was launched{close}")
    for line in row_filter.lines:
        if line not in lines:
            raise CutraceError(f"only lines {line}: no kernel that was launched has code there")
    for first, _ in row_filter.launches:
        if first >= launches:
            launch_count = (
                f"there were {launches}, counted from 0" if launches else "nothing was launched"
            )
            raise CutraceError(f"only launches {first}: {launch_count}")

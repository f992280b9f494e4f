"""Changes of arrays for what-if analysis, as `--pad` and `--align` give them.

`tile=1` makes each row of `tile` one element longer, `tile=32+1` says that a row has 32 elements.
`in=128` lets `in` begin at a multiple of 128 bytes, `in=128+4` lies 4 bytes past one; `in=4K` is a
size with a unit.
"""

from collections.abc import Mapping

from ....errors import CutraceError
from ....lazy_dataclass import dataclass
from ....size import is_whole, read_size

MOST = 1 << 47
"""The addresses of a device are less than this."""

Wish = int | str
"""A number, or a text with a `+` in it."""


@dataclass(frozen=True, slots=True)
class Pad:
    """Rows of an array become `elements` longer; `row` elements make one, None: to be found out."""

    array: str
    elements: int
    row: int | None = None

    def __str__(self) -> str:
        return f"pad {self.array}={'' if self.row is None else f'{self.row}+'}{self.elements}"


@dataclass(frozen=True, slots=True)
class Alignment:
    """An array begins `beyond` bytes past a multiple of `bytes`."""

    array: str
    bytes: int
    beyond: int = 0

    def __str__(self) -> str:
        return f"align {self.array}={self.bytes}{f'+{self.beyond}' if self.beyond else ''}"


@dataclass(frozen=True, slots=True)
class Changes:
    """All that is supposed of one trace, by the arrays' names."""

    pads: Mapping[str, Pad]
    alignments: Mapping[str, Alignment]

    def names(self) -> frozenset[str]:
        """The arrays that are named."""
        return frozenset((*self.pads, *self.alignments))


def read_changes(pad: Mapping[str, Wish], align: Mapping[str, Wish]) -> Changes:
    """Read what was typed or given; `CutraceError` for what makes no sense."""
    return Changes(
        {name: _read_pad(name, wish) for name, wish in pad.items()},
        {name: _read_alignment(name, wish) for name, wish in align.items()},
    )


def _read_pad(name: str, wish: Wish) -> Pad:
    first, second = _numbers("pad", name, wish, "N or ROW+N, elements")
    found = Pad(name, first) if second is None else Pad(name, second, first)
    if found.elements < 1 or (found.row is not None and found.row < 1):
        raise CutraceError(f"{found}: expected 1 or more")
    return found


def _read_alignment(name: str, wish: Wish) -> Alignment:
    first, second = _numbers("align", name, wish, "BYTES or BYTES+BEYOND")
    found = Alignment(name, first, second or 0)
    if first < 1 or first.bit_count() != 1:
        raise CutraceError(f"{found}: expected a power of two")
    if found.beyond >= first:
        raise CutraceError(f"{found}: expected less than {first} bytes beyond")
    return found


def _numbers(option: str, name: str, wish: Wish, expected: str) -> tuple[int, int | None]:
    """One number, or the two around a `+`."""
    words = [str(read_size(word.strip())) for word in str(wish).split("+")]
    if len(words) > 2 or not all(is_whole(word) for word in words):
        raise CutraceError(f"{option} {name}={str(wish)[:60]}: expected {expected}")
    first, *rest = map(int, words)
    if max((first, *rest)) > MOST:
        raise CutraceError(f"{option} {name}={wish}: expected at most {MOST}")
    return first, rest[0] if rest else None

"""Blocks of a sheet: a row a counter, a section a vocabulary, a block a line, array or launch."""

from collections.abc import Iterator, Mapping

from ...lazy_dataclass import dataclass
from ..counting.evaluate import Value
from ..counting.interval import Interval
from ..counting.vocabulary import Counter

Key = dict[str, str | int]
Values = Mapping[str, Value]
Intervals = Mapping[str, Interval | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A counter's values, one a device; None where the device does not have it.

    Of a sample each value has an interval; of a whole trace there are none.
    """

    counter: Counter
    values: tuple[Value, ...]
    intervals: tuple[Interval | None, ...] = ()

    def interval(self, device: int) -> Interval | None:
        """Where the true value lies on a device, by a sample of blocks."""
        return self.intervals[device] if self.intervals else None

    @property
    def is_zero(self) -> bool:
        """Whether every device has the counter and none counted anything."""
        return all(value == 0 for value in self.values)

    @property
    def is_empty(self) -> bool:
        """Whether no device has the counter."""
        return all(value is None for value in self.values)


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one vocabulary."""

    vocabulary: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The counters of one source line, array, instruction, or the whole launch.

    `key` are the columns that name the group, by name; it is empty for the launch.
    """

    key: Key
    sections: tuple[Section, ...]

    @property
    def every(self) -> Iterator[Row]:
        """The rows of all sections."""
        for section in self.sections:
            yield from section.rows

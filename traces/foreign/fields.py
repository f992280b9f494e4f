"""Fields: lines of words between blanks, read as columns of numbers."""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
import polars as pl

from ...errors import CutraceError
from .seam import Ints, Words


def number_rows(table: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return which of the distinct rows each row is, and where each of these stands first."""
    ranks = table.select(which=pl.struct(pl.all()).rank("dense"))["which"]
    which: Ints = ranks.to_numpy().astype(np.int64) - 1
    return which, np.unique(which, return_index=True)[1]


class Fields:
    """The words of n lines; `place` tells where a line stands. A word is named by its number in the
    line, counted from 0; CutraceError where a line is too short, or a word is no number."""

    def __init__(self, lines: pl.Series, place: Callable[[int], str]) -> None:
        self._place = place
        words = lines.str.strip_chars().str.replace_all(r"\s\s+", " ").str.split(" ")
        self.counts: Ints = words.list.len().to_numpy().astype(np.int64)
        self._starts = np.cumsum(self.counts) - self.counts
        self._words = words.explode()

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.counts)

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise the error of a line."""
        raise CutraceError(f"{self._place(row)}: {problem}")

    def texts(self, at: Ints, rows: Ints | None = None) -> pl.Series:
        """The word at `at` (m,) of each of `rows`, by default of all."""
        rows = np.arange(len(self)) if rows is None else rows
        short = np.flatnonzero((at >= self.counts[rows]) | (at < 0))
        if len(short):
            row = int(rows[short[0]])
            self.refuse(row, f"{self.counts[row]} words, expected more: is the line cut off?")
        return self._words.gather(self._starts[rows] + at)

    def integers(self, at: Ints, radix: int = 10, rows: Ints | None = None) -> Ints:
        """The same as numbers."""
        return self._numbers(self.texts(at, rows), radix, rows)

    def lists(self, at: Ints, length: int) -> Ints:
        """The words at `at` (n,) as `length` numbers between commas, (n, length)."""
        texts = self.texts(at)
        parts = texts.str.split(",")
        if len(short := np.flatnonzero(parts.list.len().to_numpy() != length)):
            row = int(short[0])
            self.refuse(row, f"{texts[row][:40]!r}, expected {length} numbers between commas")
        rows = np.repeat(np.arange(len(self)), length)
        return self._numbers(parts.explode(), 10, rows).reshape(-1, length)

    def words(self, rows: Ints, at: Ints, count: Ints) -> Words:
        """Addresses `0x...`: of each row `count` of them from `at` on."""
        whose = np.repeat(np.arange(len(rows)), count)
        texts = self._several(rows, at, count, whose)
        plain = texts.str.strip_prefix("0x")
        if (long := plain.str.len_bytes() > 16).any():
            self.refuse(int(rows[whose[long.arg_max() or 0]]), "an address of more than 64 bits")
        high = plain.str.head(-8).replace("", "0")  # Int64 has no room for 64 bits
        low = plain.str.tail(8)
        both = [self._numbers(part, 16, rows[whose]).astype(np.uint64) for part in (high, low)]
        return both[0] << np.uint64(32) | both[1]

    def differences(self, rows: Ints, at: Ints, count: Ints) -> Ints:
        """Decimal numbers with a sign: of each row `count` of them from `at` on."""
        whose = np.repeat(np.arange(len(rows)), count)
        return self._numbers(self._several(rows, at, count, whose), 10, rows[whose])

    def between(self, row: int, at: int, count: int) -> list[str]:
        """Some words of a line."""
        start = int(self._starts[row]) + at
        return self._words[start : start + count].to_list()

    def _several(self, rows: Ints, at: Ints, count: Ints, whose: Ints) -> pl.Series:
        first = np.cumsum(count) - count
        place = np.arange(len(whose)) - first[whose]
        return self.texts(at[whose] + place, rows[whose])

    def _numbers(self, texts: pl.Series, radix: int, rows: Ints | None) -> Ints:
        if radix == 10:
            numbers = texts.cast(pl.Int64, strict=False)
        else:
            plain = texts.str.strip_prefix("0x")
            numbers = plain.str.to_integer(base=radix, strict=False, dtype=pl.Int64)
        if numbers.null_count():
            wrong = int(numbers.is_null().arg_max() or 0)
            row = wrong if rows is None else int(rows[wrong])
            self.refuse(row, f"{texts[wrong][:40]!r} is no number; is the line whole?")
        return numbers.to_numpy()

"""The lowest and highest offsets of a launch's patterns, kept from one batch to the next."""

from dataclasses import field
from types import ModuleType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..seam import Ints
from .numbering import DENSE
from .patterns import Shapes

_NOTHING = np.zeros(0, np.int64)
_NO_SHAPES = (0, np.zeros(0, np.int32))
Named: TypeAlias = tuple[NDArray[np.uint32], int, NDArray[np.int32]]
"""Patterns of rows, (n,), and from a first pattern on the shape of each: its place in `ends`."""


@dataclass(slots=True)
class Reaches:
    """The patterns that rows had lately, `patterns` (shapes,), and their lowest and highest offset,
    both (shapes,): `ends`. `are_places` says whether rows were last named by their place in these,
    not by their pattern.
    """

    shapes: Shapes
    patterns: Ints = field(default_factory=_NOTHING.copy, init=False)
    ends: tuple[Ints, Ints] = field(default=(_NOTHING, _NOTHING), init=False)
    are_places: bool = field(default=False, init=False)
    _known: tuple[int, NDArray[np.int32]] = field(default=_NO_SHAPES, init=False)
    _has_gaps: bool = field(default=True, init=False)

    def name(self, loops: ModuleType | None, pattern: NDArray[np.uint32]) -> Named:
        """Know the patterns of rows, and where they reach; return them with their shapes.

        `loops` are those of `counting.py`, if they are compiled.
        """
        self.are_places = loops is None
        if loops is None:
            self._known = _NO_SHAPES
            self.patterns, number = self.shapes.number(pattern.astype(np.int64))
            self.ends = self.shapes.reach(self.patterns)
            return number.astype(np.uint32), 0, np.arange(len(self.patterns), dtype=np.int32)
        first, last = int(pattern.min()), int(pattern.max())
        if self._knows(loops, pattern, first, last):
            return pattern, *self._known
        span = last - first + 1
        if span > max(DENSE, 4 * len(pattern)):
            distinct, number = np.unique(pattern, return_inverse=True)
            self._known, self.patterns = _NO_SHAPES, distinct.astype(np.int64)
            named = number.astype(np.uint32), 0, np.arange(len(distinct), dtype=np.int32)
            self.are_places = True
        else:
            seen, shape = np.zeros(span, np.bool_), np.full(span, -1, np.int32)
            loops.mark_patterns(pattern, first, seen)
            places = np.flatnonzero(seen)
            shape[places] = np.arange(len(places))
            self._known, self.patterns = (first, shape), places + first
            self._has_gaps = len(places) < span
            named = pattern, first, shape
        self.ends = self.shapes.reach(self.patterns, loops)
        return named

    def _knows(self, loops: ModuleType, pattern: NDArray[np.uint32], first: int, last: int) -> bool:
        """Whether all patterns of rows, which lie between two, are known."""
        begin, shape = self._known
        if first < begin or last >= begin + len(shape):
            return False
        return not self._has_gaps or bool(loops.all_known(pattern, begin, shape))

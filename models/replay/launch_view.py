"""Launches that are read with other rows than the recorded ones."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.pattern_store import Patterns, Unpacked
from ...traces.reader import LaunchTrace


@dataclass(frozen=True)
class LaunchView(LaunchTrace):
    """A launch, `before`, of which subclasses change rows, patterns or instructions."""

    before: LaunchTrace = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, before: LaunchTrace, **more: Any) -> Self:
        """Return the view of a launch, with its own facts where `more` has no others."""
        names = ("number", "launch", "folder", "stamps", "what_if")
        return cls(**{name: getattr(before, name) for name in names} | {"before": before} | more)

    def access_batches_of(
        self, blocks: npt.NDArray[np.int64], columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the launch before that may contain any of the blocks."""
        return self.before.access_batches_of(blocks, columns)

    def pattern_store(self) -> Patterns:
        """Return the patterns as a store to read in parts."""
        return self.before.pattern_store()

    def patterns(self) -> Unpacked:
        """Return all patterns."""
        store = self.pattern_store()
        return store.take(np.arange(len(store)))

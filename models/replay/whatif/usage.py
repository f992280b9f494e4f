"""Usage: element size, row length and widest access of an array, inferred from its instructions.

For a shared-memory array a trace has only the size in bytes. The width of instructions gives the
element size; lanes that walk down a column are a row apart, which gives the row length.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....traces.column import integers
from ....traces.schema import Array
from ....traces.unique import sorted_unique
from ..interface.model import Bools, Ints
from ..rows.lanes import unpack_masks
from ..rows.sites import SPACE_SHIFT, Zones, cut_zones, element_bytes

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

WIDEST = 16
"""The largest alignment that an access needs, in bytes."""


@dataclass(slots=True)
class Usage:
    """The usage of an array: `element` and `widest` in bytes, 0 without an access; `strides` counts
    the positive distances of neighbouring lanes, in bytes.
    """

    element: int = 0
    widest: int = 0
    strides: Counter[int] = field(default_factory=Counter)

    def find_row(self, array: Array) -> int | None:
        """Return the stride of most columns if its rows fit in the array, in bytes; else None."""
        columns = Counter({s: n for s, n in self.strides.items() if s > self.widest})
        for stride, times in columns.most_common(1):
            if 2 * times > columns.total() and array.bytes % stride == 0 and stride < array.bytes:
                return stride
        return None


def read_usage(trace: "LaunchTrace") -> Mapping[str, Usage]:
    """Read all accesses of a launch; return the usage of each array by name."""
    zones = cut_zones(trace.launch.arrays)
    usages = {array.name: Usage() for array in trace.launch.arrays} | {"": Usage()}
    elements, widths = _widths(trace)
    active, offsets = trace.patterns()
    many = max(1, len(active))
    for batch in trace.access_batches():
        pc, pattern, zone = _columns(batch, zones)
        keys, times = np.unique((pc * many + pattern) * len(zones.names) + zone, return_counts=True)
        quotient, zone = np.divmod(keys, len(zones.names))
        pc, pattern = np.divmod(quotient, many)
        for number in sorted_unique(zone).tolist():
            rows = np.flatnonzero(zone == number)
            usage = usages[zones.names[number]]
            pcs = sorted_unique(pc[rows]).tolist()
            usage.element = min([n for n in (usage.element, *(elements[p] for p in pcs)) if n])
            usage.widest = max(usage.widest, *(widths[p] for p in pcs))
            pattern_ids = sorted_unique(pattern[rows])
            counts = np.bincount(pattern[rows], times[rows], many)[pattern_ids].astype(np.int64)
            _add_strides(
                usage.strides, unpack_masks(active[pattern_ids]), offsets[pattern_ids], counts
            )
    return usages


def _columns(batch: pa.RecordBatch, zones: Zones) -> tuple[Ints, Ints, Ints]:
    """Return pc, pattern and zone of each row of a batch of ACCESSES."""
    pc, pattern, space, base = integers(batch, "pc", "pattern", "space", "base")
    return pc, pattern, zones.find((space << SPACE_SHIFT) + base)


def _widths(trace: "LaunchTrace") -> tuple[list[int], list[int]]:
    """Return per pc the bytes of an element, and the alignment of an access."""
    rows = trace.instructions().select(["type", "bytes"]).to_pylist()
    widths = [min(WIDEST, row["bytes"] & -row["bytes"]) for row in rows]
    return [element_bytes(row["type"]) or 1 for row in rows], widths


def _add_strides(
    strides: Counter[int], active: Bools, offsets: NDArray[np.int32], times: Ints
) -> None:
    """Count the positive strides from each active lane to the next, each pattern `times` times."""
    steps = np.diff(offsets.astype(np.int64), axis=1)
    rising = (steps > 0) & active[:, 1:] & active[:, :-1]
    pattern, lane = np.nonzero(rising)
    values, number = np.unique(steps[pattern, lane], return_inverse=True)
    counts = np.bincount(number, times[pattern], len(values)).astype(np.int64)
    strides.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

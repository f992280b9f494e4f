"""Access: the requested bytes of memory instructions, equal on every device.

What the hardware does: these counts are not about hardware. They do not depend on the device, and
are the reference for the others.

What is modelled: `requests` is 1 per warp instruction, `lanes` the number of its active lanes.
`bytes_asked` is lanes times bytes per lane; a byte that two lanes request counts twice.
`bytes_distinct` are the bytes that at least one lane of the warp requests.

What is not: an instruction with lanes more than 2 GiB apart has several rows in the trace, and
counts once per row.

Source: the trace itself (`traces/schema.py`).
"""

from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from .replay.interface.model import Batch, Step
from .replay.rows.lanes import count_true, distinct_bytes, ordered_lanes


@dataclass(frozen=True)
class Access:
    """Counts that need no device; wired before the stages of every device."""

    counters: ClassVar[tuple[str, ...]] = ("requests", "lanes", "bytes_asked", "bytes_distinct")
    period: ClassVar[int] = 1

    def step(self, batch: Batch) -> Step:
        """Count each row by itself."""
        width = np.array([kind.width for kind in batch.kinds] or [0])[batch.kind]
        if batch.touched is not None:
            lanes, distinct = batch.touched.lanes, batch.touched.bytes
        else:
            lanes, ordered = count_true(batch.active), ordered_lanes(batch)
            distinct = np.zeros_like(lanes)
            for kind, rows in batch.parts():
                distinct[rows] = distinct_bytes(ordered[rows], kind.width)
        request_bytes, ones = lanes * width, np.ones_like(lanes)
        return Step(dict(zip(self.counters, (ones, lanes, request_bytes, distinct), strict=True)))

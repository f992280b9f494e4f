"""Constant: how many passes a load from constant memory takes.

What the hardware does. The constant cache gives one word to all lanes at once. A request whose
lanes want different addresses is served once for each of them; on 1.x each half-warp is a request
of its own.

What is modelled. `split_requests` with an active lane; `passes`, one for each distinct address of
a request; `ideal_passes`, one a request; `conflicts`, the passes beyond them; `serialized`, 1 for
an instruction that has any.

What is not. The cache itself: hits and misses. Whether two addresses in one line of it could be
served together is not documented; here they cannot. Kernel parameters and immediate operands that
an assembler takes from constant memory are not in a trace.

Source: CUDA C Programming Guide 4.2, 5.3.2.4; 7.5, 5.3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .replay.lanes import count_distinct
from .replay.seam import Batch, Step


@dataclass(frozen=True)
class Constant:
    """Loads of one device; `request_lanes` are 16 or 32."""

    request_lanes: int

    counters: ClassVar[tuple[str, ...]] = (
        "split_requests",
        "passes",
        "ideal_passes",
        "conflicts",
        "serialized",
    )
    period: ClassVar[int] = 1

    def step(self, batch: Batch) -> Step:
        """Count the distinct addresses of each request."""
        requests = len(batch), batch.active.shape[1] // self.request_lanes
        active = batch.active.reshape(-1, self.request_lanes)
        distinct = count_distinct(batch.addresses.reshape(active.shape), active)
        passes = distinct.reshape(requests).sum(axis=1)
        ideal = np.count_nonzero(distinct.reshape(requests), axis=1)
        conflicts = passes - ideal
        values = (ideal, passes, ideal, conflicts, (conflicts > 0).astype(np.int64))
        return Step(dict(zip(self.counters, values, strict=True)))

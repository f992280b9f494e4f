"""Constant: the passes of a load from constant memory.

What the hardware does. The constant cache broadcasts one word to all lanes. A request takes one
pass per distinct address; on 1.x each half-warp is a separate request.

What is modelled. `split_requests` counts requests with an active lane, `passes` one per distinct
address of a request, `ideal_passes` one per request, `conflicts` the passes beyond `ideal_passes`.
`serialized` is 1 for an instruction with a conflict.

What is not. It is not documented whether two addresses in one line share a pass; here they do not.
Kernel parameters and immediate operands that an assembler puts into constant memory are not in a
trace.

Source: CUDA C Programming Guide 4.2, 5.3.2.4; 7.5, 5.3.2.
"""

from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from .replay.interface.model import Batch, Ints, Step, one_lane
from .replay.rows.lanes import NONE, check_lanes, sort_distinct


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

    def __post_init__(self) -> None:
        """Refuse groups that do not divide a warp."""
        check_lanes("constant: request_lanes", [self.request_lanes], 1)

    def step(self, batch: Batch) -> Step:
        """Count the distinct addresses of each request."""
        requests = len(batch), batch.active.shape[1] // self.request_lanes
        active = batch.active.reshape(-1, self.request_lanes)
        words = sort_distinct(batch.addresses.reshape(active.shape), active)
        distinct = np.count_nonzero(words != NONE, axis=1).reshape(requests)
        passes = distinct.sum(axis=1)
        ideal = np.count_nonzero(distinct, axis=1)
        conflicts = passes - ideal
        values = (ideal, passes, ideal, conflicts, (conflicts > 0).astype(np.int64))
        out = _pass_on(batch, words, self.request_lanes) if batch.passes_on else None
        return Step(dict(zip(self.counters, values, strict=True)), out)


def _pass_on(batch: Batch, words: Ints, lanes: int) -> Batch:
    """Return each distinct address as a row of one lane, for the cache."""
    request, column = np.nonzero(words != NONE)
    row = request * lanes // batch.active.shape[1]
    return one_lane(batch.kinds, batch.kind[row], words[request, column], batch.row[row])

"""Counting control flow: the paths of a trace, attributed to the scopes of every device."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..control import count_control, count_launched, sum_paths
from .accesses import Track
from .place import SCOPE_NAMES
from .tally import count_scopes, scope_of

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


def count_histories(trace: "LaunchTrace", tracks: Sequence[Track], instructions: pa.Table) -> None:
    """Read what every warp ran once, and enter every device's counts."""
    paths = trace.paths()
    times = np.zeros((len(tracks), len(paths), len(SCOPE_NAMES)), np.int64)
    for batch in trace.control_batches():
        if batch.num_rows:
            block = batch["block"].to_numpy().astype(np.int64)
            path = batch["path"].to_numpy().astype(np.int64)
            for number, track in enumerate(tracks):
                scopes = scope_of(block, track.placement)
                times[number] += count_scopes(path, len(paths), scopes)
    blocks = 1 + int(instructions["block"].to_numpy().max(initial=0))
    for number, track in enumerate(tracks):
        for scope, launched in enumerate(track.placement.count_scopes()):
            if launched:
                runs = sum_paths(paths, times[number, :, scope], blocks)
                track.ledger.add_by_pc(scope, count_control(instructions, runs))
                track.ledger.add_by_pc(scope, count_launched(trace.launch, launched))

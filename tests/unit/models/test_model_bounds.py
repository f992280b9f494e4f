"""The compiled loop of caches with every index checked, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from cutrace.jit.loop_expression import CHECKED

SCRIPT = """
import numpy as np
from cutrace.models.cache import Cache
from cutrace.models.replay.stateful import cache_sim
from cutrace.jit.loop import rows_asked
from cutrace.models.replay.interface.model import Batch, Kind

SPACES = dict(line=128, sector=32, serves=["global", "local"])
CACHES = (
    dict(store="through", bytes=1 << 14, ways=8, wavers=True, on_the_way=[8, 10]),
    dict(store="evict", local_store="back", bytes=1 << 12, sets=4),
    dict(store="back", bytes=1 << 15, ways=16, fetch=64, dirty_bytes=1 << 14, partial_bytes=4096),
)
KINDS = tuple(
    Kind(space, access, "ca", 32, filled=filled)
    for space in ("global", "local")
    for access in ("load", "store", "atomic")
    for filled in (0, 4)
) + (Kind("global", "load", "ca", 128),)
MANY = 120_000
random = np.random.default_rng(5)
for keys in CACHES:
    cache = Cache(**SPACES, **keys)
    sums = {}
    for part in range(3):
        batch = Batch(
            KINDS,
            random.integers(0, len(KINDS), MANY),
            128 * random.integers(0, 1 << 10, (MANY, 1)),
            np.ones((MANY, 1), np.bool_),
            np.arange(MANY) // 3,
            passes_on=True,
            unit=np.arange(MANY) // 3 % 5,
        )
        step = cache.step(batch)
        for name, column in step.counts.items():
            sums[name] = sums.get(name, 0) + int(column.sum())
    assert rows_asked[cache_sim.__name__] > cache_sim.WORTH
    assert sums["reads"] > sums["read_hits"] > 0, sums
print("served", rows_asked[cache_sim.__name__])
"""


def test_the_compiled_loop_never_leaves_its_arrays(tmp_path: Path) -> None:
    """Without the check an index out of bounds writes where it likes, and says nothing."""
    checked = os.environ | {CHECKED: "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, env=checked, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["served", str(3 * 3 * 120_000)]

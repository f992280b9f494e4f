"""Lanes that read others which are off, gone, elsewhere or not in their mask: as on the silicon.

`lanes/open.cu`, `lanes/meeting.cu` (beside them the PTX that NVRTC makes for compute_90) and
`lanes/guarded.ptx` are such code; `scripts/capture/lanes.py` wrote what an NVIDIA H200 left into
`lanes.parquet`. What it shows: a shuffle gives 0 from a lane that does not execute it; votes,
matches and reductions count the lanes of each lane's own mask; lanes of one mask that come to two
instructions of a kind, on two sides of a branch, act together.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from cases.lanes_case import sources, untouched
from ptx.ptx_run import run_kernel

HERE = Path(__file__).parent


@cache
def texts() -> dict[str, str]:
    """The PTX that has each kernel."""
    files = [path.read_text() for path in sorted((HERE / "lanes").glob("*.ptx"))]
    return {name: text for text in files for name in re.findall(r"\.entry\s+(\w+)", text)}


def rows() -> list[Any]:
    found: list[dict[str, Any]] = pq.read_table(HERE / "lanes.parquet").to_pylist()
    return [pytest.param(row, id=f"{row['kernel']}-{row['threads']}") for row in found]


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize("row", rows())
def test_lanes_leave_what_the_silicon_leaves(row: dict[str, Any], engine: str) -> None:
    name, threads = row["kernel"], row["threads"]
    arrays = [sources(), untouched()]
    _, found = run_kernel(texts()[name], name, threads, arrays, block=threads, engine=engine)
    np.testing.assert_array_equal(found, np.array(row["words"], np.uint32))

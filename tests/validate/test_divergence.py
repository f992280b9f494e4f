"""Divergent warps of machine code run as many instructions as on an H100.

`divergence.cu` has 20 kernels, `divergence.csv` a hash of the machine code of each, and the
instructions of its warp for 20 patterns of lanes, by Nsight Compute: the same from its counter and
from its sum over addresses, but for six launches of `returns` that the counter has one more of.
"""

import csv
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
import pytest

import cutrace
from cutrace.tracer.front import nvrtc
from cutrace.tracer.front.toolkit import find_file
from cutrace.traces.reader import LaunchTrace

FOLDER = Path(__file__).parent
RUN = (2, 5, 8, 15, 17)
"""The patterns that are run here: the others differ little from these."""


def patterns() -> tuple[list[list[int]], list[int]]:
    """The value of each lane in 20 patterns, and a table that some kernels read."""
    random, lanes = Random(40), range(32)
    table = [random.randrange(32) for _ in range(128)]
    return [
        [5] * 32, [3 + 2 * (n & 1) for n in lanes], [n // 4 for n in lanes],
        [7 - n // 4 for n in lanes], [1 + (n >= 8) + (n >= 20) for n in lanes],
        [random.randrange(8) for _ in lanes],
        *([many if n == one else few for n in lanes]
          for many, few in ((9, 2), (2, 9)) for one in (0, 31)),
        [random.randrange(2) for _ in lanes], [int(n >= 16) for n in lanes],
        [int(n < 16) for n in lanes], [int(n >= 17) for n in lanes], [int(n >= 15) for n in lanes],
        [*lanes], [31 - n for n in lanes], [random.randrange(4) for _ in lanes],
        [(n * 7 + 3) % 8 for n in lanes], [1 + (n & 1) for n in lanes],
    ], table  # fmt: skip


def code_of(launch: LaunchTrace) -> str:
    """Return a hash of the instructions of a launch."""
    return sha256("\n".join(launch.instructions()["text"].to_pylist()).encode()).hexdigest()[:16]


def executed(launch: LaunchTrace) -> int:
    """Return how many instructions its warp ran."""
    lengths = Counter(launch.instructions()["block"].to_pylist())
    (path,) = launch.paths().to_pylist()
    return sum(
        lengths[block] * times for block, times in zip(path["blocks"], path["repeat"], strict=True)
    )


@pytest.mark.skipif(find_file("nvdisasm") is None, reason="nvdisasm is not installed")
def test_divergent_warps_run_as_many_instructions_as_on_a_chip(tmp_path: Path) -> None:
    lanes, table = patterns()
    source = (FOLDER / "divergence.cu").read_text()
    ptx = nvrtc.compile_program(source, "divergence.cu", "compute_90", ("-w",)).ptx
    assert ptx
    with (FOLDER / "divergence.csv").open() as file:
        rows = [*csv.DictReader(file)]
    with cutrace.Session(tmp_path / "t.cutrace", code="sm_90") as gpu:
        module = gpu.load_ptx(ptx)
        for row in rows:
            kernel = module.get_function(row["kernel"])
            for number in RUN:
                values = gpu.to_device(np.array(lanes[number] + table, np.int32))
                kernel[1, 32](values, gpu.to_device(np.zeros(256, np.uint32)))
    launches = iter(cutrace.read_trace(tmp_path / "t.cutrace").launches)
    ours = [(row, [(code_of(each), executed(each)) for _, each in zip(RUN, launches, strict=False)])
            for row in rows]  # fmt: skip
    same = [(row, [count for _, count in some]) for row, some in ours if some[0][0] == row["code"]]
    if not same:
        pytest.skip("this ptxas makes other machine code")
    wanted = [row["instructions"].split() for row, _ in same]
    assert [counts for _, counts in same] == [[int(each[n]) for n in RUN] for each in wanted]

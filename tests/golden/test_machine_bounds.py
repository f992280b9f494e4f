"""Bounds of gallery kernels on devices of 7.5 to 12.0, beside what their machine code issues."""

from collections import Counter
from pathlib import Path

import pytest

import cutrace
from cutrace.analyzer.counting.paths import read_paths
from cutrace.analyzer.machine.machine_code import (
    RESERVE,
    LeastCode,
    code_for,
    count_runs,
    machine_mix,
)
from cutrace.tracer.session.source.record import record
from cutrace.traces.column import integers
from cutrace.traces.reader import LaunchTrace, read_trace

GALLERY = Path(cutrace.__file__).parent / "traces" / "gallery"
DEVICES = ["t4", "a100", "rtx3090", "rtx4090", "h100", "b200", "rtx5090"]
CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]
SOURCES = [
    "matrix_product/product_tiled",
    "shared_banks/stride_read",
    "reduction/reduce2_strided",
    "divergence/ways_by_warp",
]


def histories(launch: LaunchTrace) -> Counter[tuple[tuple[int, int], ...]]:
    """The basic blocks that warps ran, each with how many warps ran them."""
    paths, ran = read_paths(launch), Counter[int]()
    for batch in launch.control_batches():
        ran.update(integers(batch, "path")[0].tolist())
    found = Counter[tuple[tuple[int, int], ...]]()
    for path, warps in ran.items():
        part = slice(paths.bounds[path], paths.bounds[path + 1])
        columns = (paths.columns[name][part].tolist() for name in ("blocks", "repeat"))
        found[tuple(zip(*columns, strict=True))] += warps
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_bounds_are_below_what_the_machine_code_issues_and_below_the_estimate(
    source: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.cutrace"
    record(GALLERY / f"{source}.cu", (), path)
    for launch in read_trace(path).launches:
        block_of = {row["pc"]: row["block"] for row in launch.instructions().to_pylist()}
        ran = histories(launch)
        often = Counter[int]()
        for history, warps in ran.items():
            for block, times in history:
                often[block] += warps * times
        for capability in CAPABILITIES:
            code = code_for(launch.launch, capability)
            assert code is not None
            issued = sum(
                warps * sum(machine_mix(code, count_runs(code, history, block_of)[0]).values())
                for history, warps in ran.items()
            )
            least = LeastCode(code, block_of).issued({pc: often[b] for pc, b in block_of.items()})
            assert RESERVE * least <= issued, (launch.launch.kernel, capability)
    for profile in cutrace.analyze(path, DEVICES).launches:
        assert profile.estimate is not None
        parts = {part.what: part.ns for part in profile.estimate.parts}
        for bound in profile.bounds:
            assert bound.ns <= parts.get(bound.resource, bound.ns), (profile.device, bound)
            assert bound.ns <= profile.estimate.ns

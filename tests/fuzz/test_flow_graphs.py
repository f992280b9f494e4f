"""Lanes go their own ways through random flow graphs, whichever meet where, in both engines."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both, files_of
from fuzz.flow_graph import make_graph, to_ptx, walk
from numpy.typing import NDArray

import cutrace
from cutrace.tracer.simt import tier

LANES, SEED = 96, 12345

FOUND = (79, 191, 383)
"""Graphs in which lanes left a place to meet by a way that is no branch out of it, and ran beyond
the end of the kernel."""


def left_under_both(seed: int, folder: Path) -> tuple[list[int], list[int]]:
    """Return what the lanes leave, and what they should."""
    nodes = make_graph(Random(seed))
    found: list[NDArray[Any]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(LANES, np.uint32)
        gpu.load_ptx(to_ptx(nodes)).get_function("k")[1, LANES](out, np.uint32(SEED))
        found.append(out.copy_to_host())
        return found[-1:]

    assert_same_under_both(folder, run)
    return found[-1].tolist(), [walk(nodes, lane, SEED) for lane in range(LANES)]


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_lanes_go_their_own_ways(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        left, wanted = left_under_both(seed, tmp_path)
        assert left == wanted, f"graph {seed}"


@pytest.mark.parametrize("seed", FOUND)
def test_lanes_that_nobody_meets_any_more_end_the_kernel(seed: int, tmp_path: Path) -> None:
    left, wanted = left_under_both(seed, tmp_path)
    assert left == wanted


@pytest.mark.parametrize("instructions", [1, 10, 30, 80, 200])
def test_lanes_go_on_in_machine_code_from_where_they_are(
    instructions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tier, "BRIEF", instructions)
    monkeypatch.setattr(tier, "_is_worth_compiling", lambda program: False)
    for seed in range(instructions, instructions + 8):
        nodes, traces = make_graph(Random(seed)), []
        for engine in ("array", "auto"):
            path = tmp_path / f"{engine}.cutrace"
            with cutrace.Session(path, engine=engine) as gpu:
                out = gpu.device_array(LANES, np.uint32)
                gpu.load_ptx(to_ptx(nodes)).get_function("k")[1, LANES](out, np.uint32(SEED))
                assert out.copy_to_host().tolist() == [walk(nodes, n, SEED) for n in range(LANES)]
            traces.append(files_of(path))
            shutil.rmtree(path)
        assert traces[0] == traces[1], f"graph {seed}"

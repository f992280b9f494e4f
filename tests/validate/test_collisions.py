"""What atomics cost whose lanes share words, in sectors and turns, as an H200 counted it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import cutrace
from cutrace.tracer.session.source.record import record

FOLDER = Path(__file__).parent / "counters"
TOLD = json.loads((FOLDER / "h200_collide.json").read_text())
METRICS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
)
WINDOW = 512
"""Bytes, aligned, within which the rule is exact."""
MOST = 3
"""Sectors that a warp has more elsewhere, of 32 that it can have."""


Compared = list[tuple[str, bool, Sequence[int], Sequence[int]]]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Kernel, whether its words lie in a window, the chip's counts and ours, of each launch."""
    path = tmp_path_factory.mktemp("collisions") / "t.cutrace"
    trace = cutrace.read_trace(record(FOLDER / "collide.cu", [], path))
    profile = cutrace.analyze(trace, "h200", caches=False)
    found: Compared = []
    for told, launch, ours in zip(TOLD["launches"], trace.launches, profile.launches, strict=True):
        kernel, counted = told["kernel"], dict(zip(TOLD["metrics"], told["counters"], strict=True))
        mask = [a.value for a in launch.launch.arguments if a.name == "mask"]
        word = 8 if kernel.endswith("u64") else 4
        near = bool(mask) and (int(mask[0]) + 1) * word <= WINDOW
        theirs = [counted[name] for name in METRICS]
        found.append((kernel, near, theirs, [int(ours.counters[name] or 0) for name in METRICS]))
    return found


def test_collisions_cost_what_they_cost_on_the_chip(compared: Compared) -> None:
    near = [(kernel, theirs, ours) for kernel, is_near, theirs, ours in compared if is_near]
    assert len(near) > 50
    assert [each for each in near if each[1] != each[2]] == []
    pairs = [each for each in compared if each[0] == "red_pair"]
    assert len(pairs) == 48
    assert all(theirs == ours for _, _, theirs, ours in pairs)


def test_words_far_apart_cost_three_sectors_more_at_most(compared: Compared) -> None:
    far = [(theirs, ours) for _, near, theirs, ours in compared if not near]
    short = [a - b for theirs, ours in far for a, b in zip(theirs, ours, strict=True)]
    assert min(short) == 0
    assert max(short) <= MOST
    assert sum(short) <= 0.01 * sum(sum(theirs) for theirs, _ in far)

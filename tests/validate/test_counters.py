"""Our counts of small kernels against what Nsight Compute counted on an NVIDIA H200.

`counters/h200.json` comes from scripts/capture_counters.py; each launch there is one launch comment
of a source beside it. Pairs that are zero on both sides say nothing and are left out.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cutrace
from cutrace.models.replay.device import load_device
from cutrace.models.replay.options import ReplayOptions
from cutrace.models.replay.replay import replay
from cutrace.tracer.host.record import record

FOLDER = Path(__file__).parent / "counters"
GLOBAL = {"ld": "load", "st": "store", "atom": "atomic", "red": "reduction"}
OURS = {
    **{
        f"l1tex__t_{theirs}_pipe_lsu_mem_global_op_{op}.sum": (f"global_{access}_{ours}",)
        for theirs, ours in (("requests", "requests"), ("sectors", "transactions"))
        for op, access in GLOBAL.items()
    },
    **{
        f"l1tex__data_{theirs}_mem_shared_op_{op}.sum": (f"shared_{GLOBAL[op]}_{ours}",)
        for theirs, ours in (
            ("pipe_lsu_wavefronts", "passes"),
            ("bank_conflicts_pipe_lsu", "conflicts"),
        )
        for op in ("ld", "st")
    },
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum": (
        "shared_atomic_passes",
        "shared_reduction_passes",
    ),
}
REPLACED = {
    "s_u64_own": "a 64-bit shared atomic is a loop around a load and a compare-and-swap in SASS",
    "s_u64_max": "a 64-bit shared atomic is a loop around a load and a compare-and-swap in SASS",
}
"""Kernels whose accesses the assembler replaces by others: nothing to compare."""


@cache
def captured() -> dict[str, list[tuple[str, dict[str, int]]]]:
    """Return, for each source, the kernel and the counters of every launch."""
    told = json.loads((FOLDER / "h200.json").read_text())
    found: dict[str, list[tuple[str, dict[str, int]]]] = {}
    for launch in told["launches"]:
        values = dict(zip(told["metrics"], launch["counters"], strict=True))
        found.setdefault(launch["source"], []).append((launch["kernel"], values))
    return found


def pairs(source: Path, folder: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield kernel, metric, what the H200 counted and what we count."""
    trace = cutrace.read_trace(record(source, [], folder / "t.cutrace"))
    device = load_device("h200")
    for (kernel, told), launch in zip(captured()[source.name], trace.launches, strict=True):
        counts = replay(launch, [device], ReplayOptions())[0].counts
        for metric, columns in OURS.items():
            ours = sum(int(counts[column].sum()) for column in columns)
            if kernel not in REPLACED and (told[metric] or ours):
                yield kernel, metric, told[metric], ours


@pytest.mark.parametrize("source", sorted(FOLDER.glob("*.cu")), ids=lambda path: str(path.stem))
def test_global_and_shared_accesses_count_as_on_the_chip(source: Path, tmp_path: Path) -> None:
    found = list(pairs(source, tmp_path))
    assert len(found) >= 20
    assert [pair for pair in found if pair[2] != pair[3]] == []

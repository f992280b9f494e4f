"""What other tools print of a trace, and what cutrace counts of the same file.

The numbers of `peers/*.json` are printed by the peers themselves (scripts/capture/peers.py).
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from cases.peers_case import (
    ACCESSES,
    AT_ZERO,
    EXPORTED,
    STATISTICS,
    WHOLE,
    counted,
    write_case,
)

import cutrace

FOLDER = Path(__file__).parent / "peers"
ACCEL_SIM, CUTRACER = (
    json.loads((FOLDER / f"{name}.json").read_text()) for name in ("accel-sim", "cutracer")
)


def test_every_case_was_counted_by_its_peer() -> None:
    assert [*ACCEL_SIM["counts"]] == [*WHOLE]
    assert {(*each,) for each in ACCEL_SIM["counts"].values()} == {STATISTICS}
    assert [*CUTRACER["counts"]] == [*ACCESSES]


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] if c in EXPORTED else []) for c in WHOLE],
)
def test_accel_sim_counts_of_a_trace_what_cutrace_counts(case: str, tmp_path: Path) -> None:
    found = counted(write_case(case, tmp_path), tmp_path / "x.cutrace")
    printed, missed = ACCEL_SIM["counts"][case], AT_ZERO.get(case, {})
    assert found == {name: count + missed.get(name, 0) for name, count in printed.items()}


@pytest.mark.parametrize("case", ACCESSES)
def test_cutracer_counts_of_a_trace_what_cutrace_counts(case: str, tmp_path: Path) -> None:
    done = cutrace.import_trace([write_case(case, tmp_path)], tmp_path / "x.cutrace")
    trace = cutrace.read_trace(done.path).launches[0]
    opcodes = trace.instructions()["mnemonic"].to_pylist()
    rows = trace.accesses().to_pylist()
    # a record of CUTracer's is an access of a warp
    found = Counter(opcodes[row["pc"]] for row in rows)
    warps = Counter((row["block"], row["warp"]) for row in rows)
    printed = CUTRACER["counts"][case]
    sass = {key.split()[1]: n for key, n in printed.items() if key.startswith("sass ")}
    assert found == sass
    assert sorted(warps.values()) == sorted(n for k, n in printed.items() if k.startswith("warp"))

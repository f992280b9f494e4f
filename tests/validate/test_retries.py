"""Loops of atomics as an H100 ran them: the rule of docs/validation.md, by the lanes' words.

ptxas makes loops of adds of floats to shared memory. In a turn one lane of each bank is served, so
that a warp alone takes as many turns as most of its lanes want one bank; each turn is a load of the
lanes that are left, a swap that may fail, and two wavefronts. The last load finds nothing to do.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cutrace
from cutrace.tracer.host.source.record import record

FOLDER = Path(__file__).parent / "counters"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"
ALONE = ("f32_at", "f32_odd", "f32_fetch", "pairs_at")
BANKS = 32


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, dict[str, Any]]]:
    """Kernel, most lanes that want one bank, and what the chip counted, of each warp alone."""
    trace = tmp_path_factory.mktemp("retries") / "t.cutrace"
    record(FOLDER / "retries.cu", out=trace, arch="compute_90")
    told = json.loads((FOLDER / "h100_retries.json").read_text())
    found = []
    for launch, on_chip in zip(cutrace.read_trace(trace).launches, told["launches"], strict=True):
        assert launch.launch.kernel == on_chip["kernel"]
        if on_chip["kernel"] in ALONE:
            table = launch.instructions().to_pylist()
            atomic = {row["pc"] for row in table if row["access"] in ("atomic", "reduction")}
            (mine,) = (row for row in launch.accesses().to_pylist() if row["pc"] in atomic)
            banks = Counter(each // 4 % BANKS for each in mine["addresses"] if each is not None)
            counters = dict(zip(told["metrics"], on_chip["counters"], strict=True))
            found.append((on_chip["kernel"], max(banks.values()), {**counters, **on_chip["sass"]}))
    return found


def test_a_warp_takes_a_turn_for_each_lane_that_wants_the_busiest_bank(
    turns: list[tuple[str, int, dict[str, Any]]],
) -> None:
    assert len(turns) == 26
    assert [most for _, most, _ in turns] == [counted["ATOMS.CAST.SPIN"] for *_, counted in turns]


def test_a_turn_is_a_load_and_two_wavefronts(turns: list[tuple[str, int, dict[str, Any]]]) -> None:
    """Pairs of halves took one wavefront more, in all six launches."""
    for kernel, most, counted in turns:
        assert counted["LDS"] == most + 1
        assert counted[WAVEFRONTS] == 2 * most + (kernel == "pairs_at")

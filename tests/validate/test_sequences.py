"""Random sequences of instructions leave in every register what an NVIDIA H200 leaves.

`scripts/capture/sequences.py` wrote `sequences.parquet`: 1,000 sequences of tests/fuzz/sequence.py,
run by 4,096 threads each. Here a part of them is run in either engine; `scripts/check_sequences.py`
runs all. Registers that hold another value when the driver assembles without optimization are open:
which payload a NaN of f64 gets, or what the negative of a NaN is, when instructions are merged.
"""

from functools import cache
from typing import Any

import pyarrow.parquet as pq
import pytest
from cases.sequence_case import CAPTURED, differences
from cases.sequence_run import run_sequence

IN_ARRAYS = 160
COMPILED = 16
PARTS = 4


@cache
def captured() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(CAPTURED).to_pylist()
    return rows


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sequence_leaves_what_the_silicon_leaves(part: int) -> None:
    rows = captured()[: IN_ARRAYS * PARTS : PARTS][part::PARTS]
    assert [line for row in rows for line in differences(row, run_sequence(row, "array"))] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sequence_leaves_the_same_compiled(part: int) -> None:
    rows = captured()[-COMPILED:][part::PARTS]
    assert [line for row in rows for line in differences(row, run_sequence(row, "compiled"))] == []


def test_nearly_all_registers_are_compared() -> None:
    hashes = [each for row in captured() for each in row["hashes"]]
    assert len(captured()) == 1000
    assert sum(each is None for each in hashes) < len(hashes) // 100

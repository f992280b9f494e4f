"""Bulk copies in reports: their bytes, their bounds, and no advice against the lane that starts."""

from pathlib import Path

import pytest
from cases.counter_cases import record_bulk_copies

import cutrace
from cutrace.commands._main import run

COPIES = {"blocks": 64, "bytes": 4096, "loads": 1, "stores": 1, "reductions": 0, "offset": 0}


def test_bytes_of_bulk_copies_bound_a_launch(tmp_path: Path) -> None:
    trace = record_bulk_copies(tmp_path / "copy.cutrace", COPIES)
    (launch,) = cutrace.analyze(trace, device="h100").launches
    amounts = {bound.resource: bound.amount for bound in launch.bounds}
    # what is stored stays in L2
    assert (amounts["DRAM"], amounts["L2"]) == (64 * 4096, 2 * 64 * 4096)
    assert launch.limited_by == "DRAM"


def test_pages_show_bulk_copies_by_instruction_and_array(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record_bulk_copies(tmp_path / "copy.cutrace", COPIES)
    assert run(["analyze", str(trace), "-d", "h100", "--by", "array"]) == 0
    assert "262,144  262,144  262,144  data" in " ".join(capsys.readouterr().out.split(" " * 3))
    assert run(["analyze", str(trace), "-d", "h100"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no thread loaded or stored" not in said
    assert "split their warp" not in said
    assert "no thread stored anything" not in said


def test_a_device_without_bulk_copies_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record_bulk_copies(tmp_path / "copy.cutrace", COPIES)
    assert run(["analyze", str(trace), "-d", "a100", "--by", "instruction"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "bulk copies (from 9.0 on; 2 in the code) counted as nothing" in said


def test_counters_of_l2_have_the_sectors_of_bulk_copies(tmp_path: Path) -> None:
    trace = record_bulk_copies(tmp_path / "copy.cutrace", COPIES | {"reductions": 1})
    (launch,) = cutrace.analyze(trace, device="h200").launches
    sectors = 64 * 4096 // 32
    for kind, many in (("_op_read", 1), ("_op_write", 1), ("", 3)):
        assert launch.counters[f"lts__t_sectors_srcunit_tex{kind}.sum"] == many * sectors

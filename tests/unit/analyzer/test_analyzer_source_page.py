"""The source page: counters beside the text of each line, at any width, sorted and sifted."""

import csv
from pathlib import Path

import pytest
from profiles import counts, launch_profile, profile, render

from cutrace.analyzer.profile import Profile
from cutrace.analyzer.report.view import View
from cutrace.analyzer.sheet import check_sifting
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run

KINDS = ("load", "store", "atomic", "reduction")


def paged(*devices: str, **view: object) -> Profile:
    """Line 2 loads in 4 transactions of the fewest; line 3 stores in 160 where 20 are needed."""
    zeros = {
        f"global_{kind}_{what}": [0] * 4
        for kind in KINDS
        for what in ("transactions", "ideal_transactions", "bytes_moved")
    }
    own = {
        "global_load_transactions": [4, 0, 0, 0],
        "global_load_ideal_transactions": [4, 0, 0, 0],
        "global_store_transactions": [0, 32, 48, 80],
        "global_store_ideal_transactions": [0, 4, 6, 10],
        "global_load_bytes_moved": [128, 0, 0, 0],
        "global_store_bytes_moved": [0, 1024, 1536, 2560],
        "instructions": [1, 2, 3, 5],
    }
    table = counts(**(zeros | own))
    launches = [
        launch_profile(device, (9, 0), table, "no room" if device == "old" else "")
        for device in devices or ("h200",)
    ]
    return profile(*launches, view=View(by="line", **view))  # type: ignore[arg-type]


def test_actual_ideal_and_excess_stand_beside_the_text_of_a_line() -> None:
    lines = render(paged(), "table").splitlines()
    # 32 + 48 + 80, 4 + 6 + 10, and the difference; 1024 + 1536 + 2560 bytes
    assert lines[2:8] == [
        "                   global_       global_      global_",
        "     global_        ideal_       excess_       bytes_",
        "transactions  transactions  transactions  transferred  instructions",
        "                                                                     reverse.cu",
        "           4             4             .          128             1  "
        "2      int v = in[i];",
        "         160            20           140        5,120            10  "
        "3      out[n - i] = v;",
    ]


def test_a_narrow_page_wraps_the_text_a_narrower_one_leaves_columns_out_then_come_blocks() -> None:
    whole = len("           4             4             .          128             1  ")
    bytes_alone = len("        128  ") + 24
    for width, is_page, is_whole in (
        *((width, True, True) for width in (None, 200, whole + 24)),
        *((width, True, False) for width in (whole + 9, 79, 42)),
        (bytes_alone - 8, False, True),
    ):
        text = render(paged(width=width), "table")
        assert ("'.' is 0, a blank" in text) == is_page, width
        assert ("no room at this width for" not in text) == is_whole, width
        assert not is_page or width is None or max(map(len, text.splitlines())) <= width
        for word in ("reverse.cu", "140", "out[n", "v;"):
            assert word in text
        # every counter is there, or is named as left out
        for word in ("global_bytes_transferred", "global_ideal_transactions", "instructions"):
            column = word.split("_")[-1]
            assert column in text, (width, word)


def test_what_says_least_of_the_cost_is_left_out_first() -> None:
    text = " ".join(render(paged(width=79), "table").split())
    left = text.partition("no room at this width for ")[2].partition(" '.' is 0")[0]
    assert left == "global_ideal_transactions"


def test_a_page_of_80_columns_has_a_line_a_source_line_not_a_block_of_counters() -> None:
    lines = render(paged(width=80), "table").splitlines()
    (row,) = (line for line in lines if "out[n - i] = v;" in line and line.strip()[0].isdigit())
    assert row.split()[-1] == "v;"
    assert len(lines) < 25


def test_devices_have_a_page_each_or_share_one_for_what_was_asked() -> None:
    apart = render(paged("h200", "old", "t4"), "table")
    assert "old: no room\n" in apart
    assert apart.count("instructions\n") == 2
    assert apart.index("\nh200\n") < apart.index("\nt4\n")
    together = render(paged("h200", "t4", counters=("instructions",)), "table").splitlines()
    assert together[2:7] == [
        "        h200            t4",
        "instructions  instructions",
        "                            reverse.cu",
        "           1             1  2      int v = in[i];",
        "          10            10  3      out[n - i] = v;",
    ]


def test_the_largest_come_first_and_small_ones_are_left_out_with_a_word() -> None:
    view = {"sort": "global_excess_transactions"}
    text = render(paged(**view), "table")
    assert text.index("out[n - i]") < text.index("int v")
    # line 2 has 4 of 164 transactions, 4 of the 24 at best, 1 of 11 instructions: 16.7 % at most
    assert "left out" not in render(paged(threshold=16), "table")
    assert "\nleft out: 1 line with less than 17 % of every counter\n" in render(
        paged(threshold=17), "table"
    )
    told = "left out: 1 line with less than 9 % of global_excess_transactions"
    assert told in render(paged(threshold=9, **view), "table")
    rows = csv.DictReader(render(paged(threshold=17), "csv").splitlines())
    assert {row["text"] for row in rows} == {"    out[n - i] = v;"}


@pytest.mark.parametrize(
    ("by", "sort", "threshold", "complaint"),
    [
        ("launch", "instructions", None, "--sort is for smaller rows"),
        ("launch", None, 3.0, "--threshold is for smaller rows"),
        ("line", "instructoins", None, "no counter 'instructoins'; nearest: instructions"),
        ("line", "occupancy", None, "occupancy belongs to the launch as a whole"),
        ("line", "reuse", None, "reuse is known by array only"),
        ("line", None, 101.0, "--threshold 101: expected per cent, 0 to 100"),
        ("line", None, -1.0, "--threshold -1: expected per cent, 0 to 100"),
        ("line", "sector_efficiency", 5.0, "sector_efficiency is no sum that rows have a part of"),
    ],
)
def test_what_cannot_be_sorted_or_sifted_is_said(
    by: str, sort: str | None, threshold: float | None, complaint: str
) -> None:
    with pytest.raises(CutraceError, match=complaint):
        check_sifting(by, sort, threshold)


def test_the_verb_sorts_and_sifts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.cu").write_text(
        "// cutrace: t<<<1, (32, 2)>>>(out:f32[32,64], in:f32[64,32])\n"
        "__global__ void t(float *out, const float *in)\n"
        "{\n"
        "    float v = in[threadIdx.y * 32 + threadIdx.x];\n"
        "    out[threadIdx.x * 64 + threadIdx.y] = v;\n"
        "}\n"
    )
    command = ["analyze", "t.cu", "-d", "h200", "--by", "line"]
    assert run([*command, "--sort", "global_excess_transactions", "--threshold", "30"]) == 0
    # 2 warps: 2 x 32 sectors where 2 x 4 are needed; loads are 8 of 72 sectors, and of 44 % of the
    # instructions at most
    lines = [line for line in capsys.readouterr().out.splitlines() if "out[thr" in line]
    assert lines[0].split()[:5] == ["64", "8", "56", "2,048", lines[0].split()[4]]
    assert run([*command, "--threshold", "lots"]) == 2

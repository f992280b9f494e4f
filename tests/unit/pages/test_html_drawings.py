"""What the report draws beside its tables: limits, flame graphs, PTX below lines, two sources."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from html_page import parse
from profiles import counts, launch_profile
from warps import warp

import cutrace
from cutrace.analyzer.counting.bounds import Bound
from cutrace.analyzer.counting.paths import find_splits
from cutrace.analyzer.html.branches_svg import draw_branches
from cutrace.analyzer.html.flame_svg import WIDTH, draw_flame
from cutrace.analyzer.html.gather import Subject
from cutrace.analyzer.html.limits_svg import draw_limits
from cutrace.analyzer.html.page import render
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.writer import TraceWriter

BOUNDS = (Bound("L2", 2000.0, 4000, "bytes"), Bound("issue slots", 500.0, 90, "warp instructions"))


def page(*traces: Trace) -> str:
    subjects = [
        Subject(f"{index}", trace, cutrace.analyze(trace, "h200"))
        for index, trace in enumerate(traces)
    ]
    return render(subjects, ReplayOptions(), "cutrace report")


def test_the_slowest_resource_has_the_longest_bar() -> None:
    launch = replace(launch_profile("h200", (9, 0), counts()), bounds=BOUNDS)
    (bars,) = draw_limits(launch)  # without a FLOP there is no roofline
    assert "2 us for 4,000 bytes" in bars
    assert "500 ns for 90 warp instructions" in bars
    first, second = (float(width) for width in re.findall(r'<rect [^>]*?width="([\d.]+)"', bars))
    assert first == pytest.approx(4 * second, abs=0.5)  # 2000 ns and 500


def test_a_launch_stands_on_the_roof_of_each_level_of_memory() -> None:
    table = counts(flops_half=[0] * 4, flops_single=[0, 1000, 0, 0], flops_double=[0] * 4)
    launch = replace(launch_profile("h200", (9, 0), table), bounds=BOUNDS)
    assert launch.counters["flops"] == 1000
    _, roofs = draw_limits(launch)
    # 1000 FLOP for 4000 bytes in 2000 ns
    assert "L2: 0.25 FLOP/byte, 0.5 GFLOP/s at most" in roofs
    assert roofs.count("<circle") == 1


def test_lines_stand_on_those_that_they_are_inlined_into(tmp_path: Path) -> None:
    outer = [{"file": "k.cu", "line": 9, "column": 1}]
    table = [instruction(0) | {"inlined_at": outer}, instruction(1)]
    rows = [Access(warp(stride=64)), Access(warp(stride=4), pc=1, step=1)]
    trace = hand_trace(tmp_path / "k.cutrace", rows, instructions=table)
    (found,) = cutrace.analyze(trace, "h200").launches
    drawn = draw_flame(found)
    # 32 sectors of 32 bytes through line 9, 4 without it
    told = re.findall(r"<title>(.*?)</title>", drawn)
    line = str(instruction(0)["line"])
    assert told[:3] == [
        "the launch: 1,152, 100.0 %",
        "k.cu:9: 1,024, 88.9 %",
        f"k.cu:{line}: 1,024, 88.9 %",
    ]
    widths = [float(width) + 1 for width in re.findall(r'<rect [^>]*?width="([\d.]+)"', drawn)]
    assert widths[1] == pytest.approx(WIDTH * 1024 / 1152, abs=0.1)


def test_without_an_inlined_line_there_is_no_flame_graph(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp())])
    (found,) = cutrace.analyze(trace, "h200").launches
    assert draw_flame(found) == ""


def sourced(path: Path, text: str, line: int, stride: int) -> Trace:
    """A load on a line of a source."""
    with TraceWriter(path) as made:
        made.source("k.cu", text)
        with made.launch(launch()) as rows:
            write_rows(rows, [Access(warp(stride=stride))], [instruction(0, line=line)])
    return read_trace(path)


def test_a_line_has_its_ptx_below_it(tmp_path: Path) -> None:
    root = parse(page(sourced(tmp_path / "k.cutrace", "int i;\nv = in[i];\n", 2, 4)))
    (below,) = root.find("tr", class_="ptx")
    assert below.text.split() == ["ld.global.f32", "...;"]
    assert len(root.find("input", **{"data-ptx": ""})) == 1


def test_sources_stand_side_by_side_with_what_their_lines_cost(tmp_path: Path) -> None:
    one = sourced(tmp_path / "one.cutrace", "int i = far;\nv = in[i];\n", 2, 128)
    other = sourced(tmp_path / "other.cutrace", "int i = near;\nint j;\nv = in[i];\n", 3, 4)
    (table,) = parse(page(one, other)).find("table", class_="twins")
    rows = [[cell.text for cell in row.find("td")] for row in table.find("tr") if row.find("td")]
    assert rows == [
        ["1", "int i = far;", "", "1", "int i = near;", ""],
        ["", "", "", "2", "int j;", ""],
        ["2", "v = in[i];", "1024", "3", "v = in[i];", "128"],  # 32 sectors of 32 bytes, and 4
    ]


def test_the_lanes_of_a_divergent_branch_are_drawn(tmp_path: Path) -> None:
    full, even = 0xFFFFFFFF, 0x55555555
    table = [instruction(0, "bra", predicate="%p1"), instruction(1, "ret", block=1)]
    split = [(0, full, even, 2, 1), (1, even, even, 1, 1), (1, full ^ even, full ^ even, 1, 1)]
    together = [(0, full, full, 1, 1), (1, full, full, 1, 1)]
    trace = hand_trace(
        tmp_path / "k.cutrace",
        instructions=table,
        paths=[split, together],
        control=[(0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 1)],
        launch=launch(block=(96, 1, 1)),
    )
    assert find_splits(trace.launches[0]) == {0: {(full, even): 2}}  # warps 0 and 1
    (profile,) = cutrace.analyze(trace, "h200").launches
    (drawn,) = draw_branches(profile, trace.launches[0])
    assert "k.cu:1: 2 of 3 branches split their warp" in drawn
    assert "2 times" in drawn
    styles = re.findall(r'<rect [^>]*class="(\w+)"', drawn)
    assert styles == ["lane", "other"] * 16


def test_a_curve_shows_what_caches_of_each_size_would_miss(tmp_path: Path) -> None:
    """32 lines twice: L1 has none of them with room for 31 lines, and half with room for 32."""
    trace = hand_trace(tmp_path / "r.cutrace", [Access(warp(stride=128, base=0))] * 2)
    text = page(trace)
    assert 'aria-label="miss ratio of l1 on h200 against its size, 50 % at its own' in text
    (path,) = re.findall(r'miss ratio of l1 .*?class="line" d="M([^"]+)"', text, re.DOTALL)
    heights = [float(point.split()[1]) for point in path.split("L")]
    assert heights[:5] == [heights[0]] * 5  # 128 bytes to 2 KiB: all missed
    assert heights[5:] == [heights[-1]] * 2  # 4 KiB, and its own
    assert heights[-1] - heights[0] == pytest.approx((210 - 14 - 44) / 2, abs=0.1)
    once = hand_trace(tmp_path / "once.cutrace", [Access(warp(stride=4))])
    assert "miss ratio of" not in page(once)

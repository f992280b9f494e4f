"""What notebooks show: tables of traces, launches, profiles, comparisons and sessions."""

from pathlib import Path

import numpy as np
import pytest
from hand_trace import Access, hand_trace, launch, write_rows
from html_page import Element, parse
from warps import warp

import cutrace
from cutrace.analyzer.comparison.comparison import compare_profiles
from cutrace.analyzer.comparison.comparison_report import comparison_document
from cutrace.analyzer.report import render
from cutrace.analyzer.report.view import View
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.writer import TraceWriter

KERNEL = "__global__ void k(float *x) { x[threadIdx.x] = 1; }\n"
HOSTILE = "<b>&\"'"


def rows(shown: str) -> dict[str, list[str]]:
    """The tables' rows by their first cell."""
    return {
        row.find("th")[0].text: [cell.text for cell in row.find("td")]
        for row in parse(shown).find("tr")
        if row.find("td")
    }


def captions(shown: str) -> list[str]:
    return [caption.text for caption in parse(shown).find("caption")]


def trace_of(path: Path, stride: int = 64) -> Trace:
    shape = launch(signature=f"k{HOSTILE}(float *data)")
    return hand_trace(path, [Access(warp(stride=stride))], launch=shape)


def test_a_trace_has_a_row_a_launch_and_a_launch_its_arrays(tmp_path: Path) -> None:
    trace = trace_of(tmp_path / "k.cutrace")
    shown = trace._repr_html_()
    assert captions(shown) == ["k.cutrace"]
    described = f"k{HOSTILE}(float *data), 1 x 1 x 1 blocks of 32 x 1 x 1 threads"
    assert rows(shown) == {"0": [described, "1"]}
    (one,) = trace.launches
    assert rows(one._repr_html_())["data"] == ["global", "1048576 bytes at 0x10000000"]
    assert rows(one._repr_html_())["accesses"] == ["table", "1 rows"]


def test_long_traces_say_how_many_launches_more_there_are(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        for _ in range(53):
            with made.launch(launch()) as writing:
                write_rows(writing)
    shown = read_trace(tmp_path / "k.cutrace")._repr_html_()
    assert len(rows(shown)) == 50
    assert "<p>and 3 more</p>" in shown


def test_a_profile_has_a_table_a_launch_with_a_column_a_device(tmp_path: Path) -> None:
    profile = cutrace.analyze(trace_of(tmp_path / "k.cutrace"), ["8800gtx", "h200"])
    found = rows(profile._repr_html_())
    # 32 lanes 64 bytes apart: a transaction each
    assert found["global_load_transactions"] == ["32", "32"]
    assert "shared_wavefronts" not in found
    assert captions(profile._repr_html_()) == [f"k{HOSTILE}<<<1, 32>>>()"]
    alone = rows(profile.launches[1]._repr_html_())
    assert alone["global_load_transactions"] == ["32"]
    assert "global_store_transactions" not in alone


def test_what_a_device_refuses_is_said(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "k.cutrace", launch=launch(block=(1024, 1, 1)))
    profile = cutrace.analyze(trace, ["8800gtx", "h200"])
    refusal = "cannot launch: 512 threads a block at most"
    assert rows(profile._repr_html_())["launch"] == [refusal, "runs"]
    assert refusal in profile.launches[0]._repr_html_()


def test_a_comparison_has_a_column_a_variant_with_the_best_marked(tmp_path: Path) -> None:
    variants = {
        name: cutrace.analyze(trace_of(tmp_path / f"{name}.cutrace", stride), "h200")
        for name, stride in (("far", 64), ("near", 4))
    }
    found = rows(render(comparison_document(compare_profiles(variants), View()), "html"))
    assert found["global_load_transactions"] == ["32", "4 *", "-28", "8x less"]
    assert "global_load_requests" not in found


def test_a_session_without_a_path_shows_its_trace_once_it_is_whole() -> None:
    session = cutrace.Session()
    assert repr(session).endswith(": not open>")
    with session as gpu:
        assert "recording" in gpu._repr_html_()
        data = gpu.device_array(32, np.float32, name="x")
        gpu.compile(KERNEL).get_function("k")[1, 32](data)
    assert repr(session).endswith(": its trace is whole>")
    assert rows(session._repr_html_()) == rows(read_trace(session.trace)._repr_html_())
    assert rows(session._repr_html_())["0"][1] == "1"
    (profile,) = cutrace.analyze(session.trace, "h200").launches
    assert profile.counters["global_store_transactions"] == 4


def test_a_session_that_failed_has_no_trace_to_show() -> None:
    session = cutrace.Session()
    with pytest.raises(ZeroDivisionError), session:
        1 / 0  # noqa: B018
    assert repr(session).endswith(": not open>")
    assert isinstance(parse(session._repr_html_()), Element)

"""Forked children of a process that has computed with polars: an error, and no waiting for ever."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hand_trace import Access, hand_trace
from polars.testing import assert_frame_equal
from warps import warp

import cutrace
from cutrace.base import frames
from cutrace.commands.info import info

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
LONGEST = 60
"""Seconds after which a child hangs."""
ASKED: dict[str, Callable[[str], object]] = {
    "advise": cutrace.advise,
    "analyze": lambda trace: cutrace.analyze(trace, "gtx580"),
    "check": lambda trace: cutrace.check(trace, {"*": {"global_load_transactions": 1000}}),
    "compare": lambda trace: cutrace.compare({"a": trace, "b": trace}),
    "counters": lambda _: cutrace.counters(),
    "devices": lambda _: cutrace.devices(),
    "info": info,
    "miss_ratios": cutrace.miss_ratios,
    "occupancy": cutrace.occupancy,
    "report": cutrace.report,
    "scan_traces": lambda trace: cutrace.scan_traces([trace], "accesses").collect(),
    "why": cutrace.why,
}


def in_child(call: Callable[[], object]) -> str:
    """What a forked child does: `answered`, the CutraceError that it raises, or `hangs`."""
    read, write = os.pipe()
    if not os.fork():
        try:
            signal.alarm(LONGEST)
            call()
            os.write(write, b"answered")
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as file:
        said = file.read()
    os.wait()
    return said or "hangs"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(frames, "PATIENCE", 0.5)
    pl.DataFrame({"key": [2, 1]}).sort("key")
    return str(hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4))]).path)


@pytest.mark.parametrize("name", ASKED)
def test_every_function_answers_or_says_why_it_cannot(name: str, trace: str) -> None:
    said = in_child(lambda: ASKED[name](trace))
    assert said == "answered" or said.startswith("CutraceError: polars gives no answer in process")


def test_analysis_and_values_of_the_parents_profile_are_refused(trace: str) -> None:
    profile: Any = cutrace.analyze(trace, "gtx580")
    for call in (
        lambda: cutrace.analyze(trace, "gtx480"),
        lambda: profile.launches[0].lines,
        lambda: cutrace.why(trace),
    ):
        assert "start this one anew" in in_child(call)


def test_a_process_that_was_forked_before_the_first_query_answers(trace: str) -> None:
    """In a new process, as polars has run in this one."""
    code = f"""
import os, cutrace, polars
if not os.fork():
    cutrace.analyze({trace!r}, "gtx580").launches[0].counters
    os._exit(7)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 7


def test_frames_are_pickled_as_arrow() -> None:
    frames.require_frames()
    half = pl.DataFrame({"name": ["a", None], "lanes": [[1], [2, 3]], "ns": [0.5, None]})
    frame = pl.concat([half, half], rechunk=False)
    data = pickle.dumps(frame)
    assert b"_from_arrow" in data  # polars' own way may wait for ever: base/frames.py
    assert_frame_equal(pickle.loads(data), frame)
    assert pickle.loads(pickle.dumps(pl.DataFrame())).shape == (0, 0)

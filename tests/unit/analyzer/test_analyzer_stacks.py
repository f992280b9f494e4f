"""Stacks of lines as FlameGraph, speedscope and KCachegrind read them; the line that is told."""

import json

import pytest
from hand_trace import Access, hand_trace, instruction, instruction_table
from warps import warp

from cutrace.analyzer.build_profile import find_places
from cutrace.analyzer.profile import Profile, analyze
from cutrace.analyzer.profilers.stacks import (
    render_callgrind,
    render_folded,
    render_speedscope,
)
from cutrace.base.errors import CutraceError
from cutrace.traces.schema import Manifest

ROOT = "0 k<<<1, 32>>>()"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """A load of 4 sectors at k.cu:1, and one of 32 at h.cuh:7, inlined at k.cu:3 of k.cu:2."""
    chain = [{"file": "k.cu", "line": line, "column": 1} for line in (3, 2)]
    inner = instruction(1, file="h;x.cuh", line=7, inlined_at=chain)
    path = tmp_path_factory.mktemp("stacks") / "k.cutrace"
    accesses = [Access(warp(stride=4)), Access(warp(stride=128), pc=1, step=1)]
    return analyze(hand_trace(path, accesses, instructions=[instruction(0), inner]), "h200")


def test_folded_stacks_have_one_line_each_and_no_other_semicolons(profile: Profile) -> None:
    assert render_folded(profile).splitlines() == [
        f"{ROOT};k.cu:1 4",
        f"{ROOT};k.cu:2;k.cu:3;h,x.cuh:7 32",
    ]


def test_the_counter_is_the_one_asked_for(profile: Profile) -> None:
    asked = render_folded(profile, ["global_load_requests"])
    assert [line.rpartition(" ")[2] for line in asked.splitlines()] == ["1", "1"]


def test_speedscope_reads_a_profile_for_each_counter(profile: Profile) -> None:
    told = json.loads(
        render_speedscope(profile, ["global_transactions", "global_bytes_transferred"])
    )
    frames = [frame["name"] for frame in told["shared"]["frames"]]
    stacks = [[frames[n] for n in sample] for sample in told["profiles"][0]["samples"]]
    assert stacks == [[ROOT, "k.cu:1"], [ROOT, "k.cu:2", "k.cu:3", "h;x.cuh:7"]]
    weights = {p["name"]: (p["unit"], p["weights"], p["endValue"]) for p in told["profiles"]}
    assert weights == {
        "global_transactions": ("none", [4, 32], 36),
        "global_bytes_transferred": ("bytes", [4 * 32, 32 * 32], 36 * 32),
    }


def test_callgrind_has_the_file_of_each_line(profile: Profile) -> None:
    text = render_callgrind(profile, ["global_transactions"])
    assert text.splitlines()[3:] == [
        *("positions: line", "events: global_transactions", ""),
        *("fl=k.cu", f"fn={ROOT}", "1 4", "fi=h;x.cuh", "7 32"),
    ]


@pytest.mark.parametrize("ratio", ["sector_efficiency", "reuse", "launch__grid_size"])
def test_what_does_not_add_up_is_refused(ratio: str, profile: Profile) -> None:
    with pytest.raises(CutraceError, match=f"^{ratio} is no count that lines have parts of"):
        render_folded(profile, [ratio])


CALLER = {"file": "k.cu", "line": 2, "column": 1}
OUTER = {"file": "k.cu", "line": 5, "column": 1}


def place(file: str, *inlined_at: dict[str, object]) -> tuple[object, ...]:
    table = instruction_table([instruction(0, file=file, line=7, inlined_at=[*inlined_at])])
    sources = {"k.cu": "one\ntwo\nthree\nfour\nfive", "own.cuh": "\n" * 6 + "seven"}
    (row,) = find_places(table, Manifest(sources=sources)).to_dicts()
    return row["file"], row["line"], row["text"], row["stack"].splitlines()


def test_what_a_header_without_text_wraps_is_its_callers() -> None:
    stack = ["k.cu:5", "k.cu:2", "atomics.hpp:7"]
    assert place("atomics.hpp", CALLER, OUTER) == ("k.cu", 2, "two", stack)


def test_a_line_whose_text_is_there_stays() -> None:
    stack = ["k.cu:2", "own.cuh:7"]
    assert place("own.cuh", CALLER) == ("own.cuh", 7, "seven", stack)


def test_without_any_text_the_instructions_own_line_is_told() -> None:
    far = {"file": "b.h", "line": 1, "column": 1}
    assert place("a.h", far) == ("a.h", 7, "", ["b.h:1", "a.h:7"])

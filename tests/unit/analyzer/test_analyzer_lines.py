"""The source line of an instruction: the innermost whose text the trace has."""

from hand_trace import instruction, instruction_table

from cutrace.analyzer.counted import find_places
from cutrace.traces.schema import Manifest

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

"""The quiz: questions from the gallery's integers, answered with their arithmetic."""

import io

import pytest

from cutrace.commands._main import run
from cutrace.commands.options.complete import FOLDER, folders
from cutrace.commands.quiz import choose, launch_lines, questions

Captured = pytest.CaptureFixture[str]


def test_a_question_is_a_counter_of_a_launch_with_its_arithmetic() -> None:
    every = [*questions(FOLDER / "transpose")]
    (found,) = (
        q
        for q in every
        if (q.source.stem, q.launch, q.device, q.counter)
        == ("transpose_naive", 1, "h200", "global_load_transactions")
    )
    # 8192 threads in 256 warps that each read 128 bytes in a row: 4 sectors a warp
    assert found.answer == 256 * 4
    assert found.why == "256 * 4"
    assert found.words == (
        "transpose_naive.cu, launch 1 on h200: transposeNaive<<<(4, 2), (32, 32)>>>"
    )
    assert not any(q.device == "8800gtx" and q.launch for q in every), "those were refused"


def test_most_families_have_questions() -> None:
    counts = {folder.name: len([*questions(folder)]) for folder in folders()}
    assert sum(count > 4 for count in counts.values()) > len(counts) // 2


def test_a_launch_may_go_over_several_lines() -> None:
    text = "// cutrace: f<<<1, 2>>>(a,\n//     b)\n// cutrace: g<<<3, 4>>>()\n// a note\n"
    assert launch_lines(text) == ["f<<<1, 2>>>", "g<<<3, 4>>>"]


def test_answers_are_judged_and_the_arithmetic_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    first, second = choose([*questions(FOLDER / "transpose")], 2, 3)
    answers = f"{first.answer:,}\n{second.answer + 1}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert run(["quiz", "transpose", "--questions", "2", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert f"right: {first.answer}, since {first.why}" in said
    assert f"no: {second.answer}, since {second.why}" in said
    assert "1 of 2 right\nnext: cutrace gallery transpose" in said
    assert "__global__ void" in said


def test_without_an_answer_the_quiz_ends(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["quiz", "transpose"]) == 0
    assert "0 of 5 right" in capsys.readouterr().out


def test_solutions_are_printed_and_an_unknown_family_is_named(capsys: Captured) -> None:
    assert run(["quiz", "shared_banks", "--solutions", "--questions", "1"]) == 0
    assert ", since " in capsys.readouterr().out
    assert run(["quiz", "transpos"]) == 2
    assert "transpose" in capsys.readouterr().err

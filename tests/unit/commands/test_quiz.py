"""The quiz: questions from the gallery's integers, answered with their arithmetic."""

import io
import re
from collections.abc import Sequence

import pytest

from cutrace.commands._main import run
from cutrace.commands.options.complete import FOLDER, folders
from cutrace.commands.quiz import TODAY, Question, choose, launch_lines, number_of, questions

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
    assert found.why == "256 warps * 4 sectors"
    assert found.solution == "1,024 = 256 warps x 4 sectors"
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


def asked(family: str, number: int, seed: int, devices: Sequence[str] = TODAY) -> list[Question]:
    every = [q for q in questions(FOLDER / family) if q.device in devices]
    return choose(sorted(every, key=lambda q: devices.index(q.device)), number, seed)


def test_answers_are_judged_and_the_arithmetic_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    first, second = asked("transpose", 2, 3, ["h100"])
    answers = f"{first.answer:,}\n{second.answer + 1}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert run(["quiz", "transpose", "-d", "h100", "--questions", "2", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert f"right: {first.solution}" in said
    assert f"no: {second.solution}" in said
    assert "2 of 2 right" not in said
    assert "1 of 2 right\nnext: cutrace gallery transpose" in said
    assert "__global__ void" in said


def test_a_word_is_asked_again_and_the_end_of_input_counts_no_question(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (first,) = asked("transpose", 5, 0, ["h100"])[:1]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"banana\n\n1/0\n{first.answer}\n"))
    assert run(["quiz", "transpose", "-d", "h100"]) == 0
    said = capsys.readouterr().out
    assert said.count("a number, please") == 3
    assert "1 of 1 right; 4 not answered" in said
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["quiz", "transpose"]) == 0
    assert "0 of 0 right; 5 not answered" in capsys.readouterr().out


def test_a_share_is_right_as_per_cent_or_as_a_fraction() -> None:
    (t4,) = (
        q
        for q in questions(FOLDER / "occupancy")
        if (q.device, q.launch, q.counter) == ("rtx4090", 0, "occupancy")
    )
    assert t4.solution == "83.33 % = 10 blocks x 4 warps / 48 warps"
    for text in ("83.3 %", "83.33", "0.8333", "40/48", "5 / 6"):
        assert t4.accepts(number_of(text)), text
    for text in ("62.5 %", "40", "0.8", "1"):
        assert not t4.accepts(number_of(text)), text


@pytest.mark.parametrize("family", [folder.name for folder in folders()])
def test_every_number_of_an_answer_has_its_noun(family: str) -> None:
    for question in questions(FOLDER / family):
        bare = re.search(r"\d", re.sub(r"\d[\d.,]* [A-Za-z]", "", question.why))
        assert bare is None, question.solution


def test_questions_are_about_todays_devices_and_some_answers_differ_between_them() -> None:
    for family in ("occupancy", "reduction", "reverse_array", "transpose", "shifted_copy"):
        for seed in range(9):
            selection = asked(family, 5, seed)
            assert {q.device for q in selection} <= {"h100", "a100", "rtx4090", "rtx3060", "t4"}
            answers: dict[object, set[float]] = {}
            for question in selection:
                answers.setdefault(question.subject, set()).add(question.answer)
            assert any(len(values) > 1 for values in answers.values()), (family, seed)
            assert len(set(selection)) == 5, (family, seed)


def test_a_device_is_asked_about_if_the_family_has_questions_on_it(capsys: Captured) -> None:
    assert run(["quiz", "reverse_array", "-d", "8800gtx, t4", "--solutions"]) == 0
    printed = capsys.readouterr().out
    assert "on 8800gtx" in printed
    assert "on h100" not in printed
    assert run(["quiz", "hello", "-d", "k20"]) == 2
    assert "hello: no question about k20; there are some for 8800gtx, t4" in capsys.readouterr().err
    assert run(["quiz", "hello", "-d", "h10"]) == 2
    assert "h100" in capsys.readouterr().err


def test_a_sheet_has_the_questions_of_the_solutions_and_no_answer(capsys: Captured) -> None:
    assert run(["quiz", "shared_banks", "--sheet", "--seed", "2"]) == 0
    sheet = capsys.readouterr().out
    assert "__global__ void strideRead" in sheet
    for question in asked("shared_banks", 5, 2):
        assert question.words in sheet
        assert question.solution not in sheet
        assert question.why not in sheet


def test_solutions_are_printed_and_an_unknown_family_is_named(capsys: Captured) -> None:
    assert run(["quiz", "shared_banks", "--solutions", "--questions", "1"]) == 0
    (question,) = asked("shared_banks", 1, 0)
    assert question.solution in capsys.readouterr().out
    assert run(["quiz", "transpos"]) == 2
    assert "transpose" in capsys.readouterr().err


def test_a_family_like_no_other_is_answered_with_all(capsys: Captured) -> None:
    assert run(["quiz", "zzzz"]) == 2
    err = capsys.readouterr().err
    assert "no family 'zzzz' in the gallery; expected one of bitonic_sort, constant_table, " in err

"""A kernel's name of thousands of characters: short to a person, whole to a program."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_trace import Access, launch, write_rows
from warps import warp

from cutrace.commands._main import run
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

NAME = f"ns::gemm<{'ns::layout<128, 64>, ' * 200}float>"


def test_the_first_screen_has_a_short_name_and_json_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.cutrace"
    arguments = (Argument("params", "b8", "0123456789abcdef" * 40),)
    with TraceWriter(path) as writer:
        shown = replace(launch(), signature=f"{NAME}(float *x)", arguments=arguments)
        with writer.launch(shown) as rows:
            write_rows(rows, [Access(warp(stride=4))])
    assert run(["analyze", str(path), "-d", "h100", "-q"]) == 0
    text = capsys.readouterr().out
    assert "gemm<layout<128, 64>, layout<128, 64>, ...><<<1, 32>>>(params={0xefcdab89" in text
    assert len(text) < 1000
    assert run(["analyze", str(path), "-d", "h100", "--format", "json"]) == 0
    assert NAME in json.loads(capsys.readouterr().out)["launches"][0]["kernel"]


def record_two(path: Path, arguments: tuple[Argument, ...]) -> None:
    """Record two instances of a template, of which the third argument's first differs."""
    with TraceWriter(path) as writer:
        for kind in ("float", "half"):
            name = f"ns::run<ns::Gemm<{'ns::Shape<128, 64>, ' * 40}ns::Mma<ns::{kind}, 4>>, int>"
            shown = replace(launch(), signature=f"{name}(Params p)", arguments=arguments)
            with writer.launch(shown) as rows:
                write_rows(rows, [Access(warp(stride=4))])


def test_names_of_a_template_show_what_tells_them_apart_and_a_structure_its_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.cutrace"
    type_ = f"ns::Gemm<{'ns::Shape<128, 64>, ' * 40}int>::Params"
    record_two(path, (Argument("p", type_, "01" * 400), Argument("n", "int", 7)))
    for by in ((), ("--by", "line")):
        assert run(["analyze", str(path), "-d", "h100", "-q", *by]) == 0
        text = capsys.readouterr().out
        for kind in ("float", "half"):
            assert f"run<Gemm<..., Mma<{kind}, ...>>, ...><<<1, 32>>>(" in text
        assert "p={Gemm<...>::Params, 400 bytes}, n=7)" in text
        assert max(map(len, text.splitlines())) < 200
    assert run(["analyze", str(path), "-d", "h100", "-q", "--all"]) == 0
    assert "ns::Mma<ns::half, 4>>, int><<<1, 32>>>(p=0101" in capsys.readouterr().out


def test_arguments_that_do_not_fit_in_a_line_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.cutrace"
    record_two(path, tuple(Argument(f"number_{n}", "int", n) for n in range(30)))
    assert run(["analyze", str(path), "-d", "h100", "-q", "--launch", "0"]) == 0
    first = next(line for line in capsys.readouterr().out.splitlines() if "<<<" in line)
    assert "(number_0=0, number_1=1, " in first
    assert first.endswith(", ...)")
    assert len(first) <= 110


def test_kernels_are_chosen_by_the_name_of_a_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.cutrace"
    record_two(path, ())
    chosen = ["analyze", str(path), "-d", "h100", "-q", "--kernels", "^run$", "--kernel-name-base"]
    assert run([*chosen, "function"]) == 0
    assert capsys.readouterr().out.count("<<<1, 32>>>") == 2
    assert run([*chosen, "demangled"]) == 2
    assert "no kernel's name matches" in capsys.readouterr().err
    assert run([*chosen, "short"]) == 2
    assert "expected function, demangled, mangled" in capsys.readouterr().err

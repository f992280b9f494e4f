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
    assert "gemm<...><<<1, 32>>>(params={0xefcdab8967452301, " in text
    assert len(text) < 1000
    assert run(["analyze", str(path), "-d", "h100", "--format", "json"]) == 0
    assert NAME in json.loads(capsys.readouterr().out)["launches"][0]["kernel"]

"""Fields of a dataclass as options: read as typed, typed as read, and an argument in Python."""

import shlex
from inspect import signature
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner, Result

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.commands.options.command_line import typed
from cutrace.commands.options.recording import RECORDING, Recording
from cutrace.commands.options.replay import REPLAY
from cutrace.commands.options.verb import (
    VERBS,
    Line,
    argument,
    command_of,
    flag,
    shown,
    value,
    verb,
)
from cutrace.models.replay.interface.options import ReplayOptions

TYPED = [
    "",
    " -d 8800gtx,h200 --dlcm cg --registers 16 --jobs 2",
    " --set coalescer.load=sector --set banks.count=16 --as-if --no-caches",
    " --scope all --pad tile=32+1 --align in=128",
    ' --launch "k<<<1, 2>>>()" --launch 3 --arch compute_80 -DN=4 -DM -Iinclude -std=c++20',
    " --check-uninitialized --only-blocks 0-7 --no-control --sample-blocks 1% --sample-seed 7",
]


@pytest.mark.parametrize("words", TYPED)
def test_options_are_typed_again_as_they_were_read(words: str) -> None:
    found: list[str] = []

    @verb("Ask")
    def ask(
        *, replay: ReplayOptions = REPLAY, recording: Recording = RECORDING, **options: object
    ) -> None:
        found.append(typed(replay) + typed(recording))

    assert invoke(words).exit_code == 0
    assert found == [words]


def test_a_number_that_two_classes_have_is_given_to_both() -> None:
    found: list[int | None] = []

    @verb("Ask")
    def ask(
        *, replay: ReplayOptions = REPLAY, recording: Recording = RECORDING, **options: object
    ) -> None:
        found.extend((replay.jobs, recording.jobs))

    assert invoke(" --jobs 2").exit_code == 0
    assert found == [2, 2]


def invoke(words: str) -> Result:
    """Run the verb of this module with some words."""
    app = typer.Typer()
    app.command()(command_of(VERBS[__name__.rpartition(".")[2]]))
    return CliRunner().invoke(app, shlex.split(words))


def test_one_function_is_the_command_and_the_python_function() -> None:
    @verb("Ask", "cutrace ask a 3")
    def ask(
        place: Annotated[str, argument("A place")],
        count: Annotated[int, value("How many.", "N")] = 1,
        *,
        upper: Annotated[bool, flag("In capitals.")] = False,
        replay: ReplayOptions = REPLAY,
        **options: Any,
    ) -> list[str]:
        """Repeat a place.

        In Python the answer is a list.
        """
        return [place.upper() if upper else place] * count + list(replay.devices)

    @shown(ask)
    def show(
        answer: list[str], line: Line, comma: Annotated[str, value("Between.", "TEXT")] = ","
    ) -> None:
        print(comma.join(answer), line.again("why", line.values["place"]), line.first)

    assert invoke("a --count 2 --upper -d k40").stdout == "A,A,k40 cutrace why a -d k40 \n"
    assert invoke("a --comma -").stdout.startswith("a cutrace why a device: h100 (the default")
    assert "Repeat a place." in invoke("--help").stdout
    assert "In Python" not in invoke("--help").stdout
    assert ask("a", 2, device="k40") == ["a", "a", "k40"]
    assert ask("a", replay=ReplayOptions("k40"), jobs=1) == ["a", "k40"]
    assert str(signature(ask)) == (
        "(place: str, count: int = 1, *, upper: bool = False, **options: Any) -> list[str]"
    )
    with pytest.raises(TypeError, match=r"ask\(\) has no keyword 'devcie'"):
        ask("a", devcie="k40")


def test_a_verb_is_a_function_of_the_package_without_being_listed() -> None:
    assert getattr(cutrace, "gallery")("transpose").startswith("# ")  # noqa: B009 (untyped)
    assert not hasattr(cutrace, "galery")


def test_every_replay_option_is_an_argument_of_analyze_in_the_same_order() -> None:
    arguments = [*signature(cutrace.analyze).parameters]
    assert arguments == ["trace", *signature(ReplayOptions).parameters]


def test_a_pair_without_a_value_says_what_is_expected() -> None:
    @verb("Ask")
    def ask(*, replay: ReplayOptions = REPLAY, **options: object) -> None:
        pass

    result = invoke("--pad tile")
    assert isinstance(result.exception, CutraceError)
    assert str(result.exception) == "--pad tile: expected ARRAY=[ROW+]N"

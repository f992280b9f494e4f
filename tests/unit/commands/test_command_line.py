"""Fields of a dataclass as options: read as typed, typed as read, and an argument in Python."""

import shlex
from inspect import signature

import pytest
import typer
from typer.testing import CliRunner

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.commands.options.command_line import typed
from cutrace.commands.options.recording import Recording, records
from cutrace.commands.options.replay import replays
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
    app, found = typer.Typer(), []

    @app.command()
    @records
    @replays
    def verb(replay: ReplayOptions, recording: Recording) -> None:
        found.append(typed(replay) + typed(recording))

    result = CliRunner().invoke(app, shlex.split(words))
    assert (result.exit_code, found) == (0, [words])


def test_every_replay_option_is_an_argument_of_analyze_in_the_same_order() -> None:
    arguments = [*signature(cutrace.analyze).parameters]
    assert arguments == ["trace", *signature(ReplayOptions).parameters]


def test_a_pair_without_a_value_says_what_is_expected() -> None:
    app = typer.Typer()
    app.command()(replays(lambda replay: None))
    result = CliRunner().invoke(app, ["--pad", "tile"])
    assert isinstance(result.exception, CutraceError)
    assert str(result.exception) == "--pad tile: expected ARRAY=[ROW+]N"

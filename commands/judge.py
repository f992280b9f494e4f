"""`cutrace judge`: one verdict on a candidate: faster, slower, same or broken."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import CutraceError
from ..models.replay.interface.options import ReplayOptions
from .options.replay import replays
from .options.selection import Reading, reads
from .running.program import TakesProgram, program_of

PANEL = "Compare"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace judge scale.cu fixed.cu",
    "cutrace judge scale.cu fixed.cu --format json",
    'cutrace judge a.cu b.cu --launch "k<<<4, 256>>>(out:f32[1024])" --expect out.npy',
)
FORMATS = ("text", "json")


@reads
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Reading,
    before: Annotated[Path, typer.Argument(help="The reference: a source, trace or program")],
    after: Annotated[
        Path,
        typer.Argument(
            metavar="AFTER [-- ARGUMENTS]", help="The candidate; both get the arguments behind --"
        ),
    ],
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ARRAY=]FILE.npy",
            help="Compare an array of the candidate with these values, not with the reference's.",
        ),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(metavar="R", help="Relative error of floats (default: half their digits)."),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(metavar="A", help="Absolute error (default: 100 units in the last place)."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(metavar="S", min=0.1, help="Stop a variant after this processor time."),
    ] = 60.0,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print it.")
    ] = "text",
) -> int:
    """Judge a candidate: does it work, are its results the same, is it faster?

    The exit status is 0 for faster and same, 1 for slower and broken, 2 if there is no verdict.
    """
    if format not in FORMATS:
        raise CutraceError(f"no format {format!r}; expected {' or '.join(FORMATS)}")
    from ..base.options import changed
    from ..base.sanitize import sanitize
    from .api.judge import judge

    judgement = judge(
        before,
        after,
        expect=dict(map(_named, expect or ())),
        rtol=rtol,
        atol=atol,
        seconds=seconds,
        recording=recording,
        program=program_of(ctx),
        **changed(replay),
    )
    text = judgement.json() if format == "json" else f"{judgement}\n"
    sys.stdout.write(sanitize(text))
    return judgement.exit_status


def _named(word: str) -> tuple[str, Path]:
    """Return the array and the file of `NAME=FILE.npy`, or of `NAME.npy`."""
    name, equals, path = word.partition("=")
    return (name, Path(path)) if equals else (Path(word).stem, Path(word))

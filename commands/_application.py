"""The application of the command line, assembled from the verbs beside this file."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import typer
from typer.main import get_command

from .. import commands
from ..claim import sweep, sweep_scratch
from ..version import __version__
from ._help import Verb, Verbs
from ._plain_values import take_as_given
from .options.screen import WHEN, is_quiet, screen_of, without_next

ABOUT = "What a CUDA kernel does to the memory system, and why, without a GPU."
PANELS = ("Record", "Ask", "Compare", "Look up")
"""The groups of verbs in the help, in order."""


def call(arguments: list[str]) -> object:
    """Run one command line; return what its verb returns, raise what it raises.

    What commands that were killed have left goes first: in the folder for such, and in this one.
    """
    sweep_scratch()
    sweep(Path())
    if arguments[:1] == ["nvcc"]:  # all that follows is the compiler's
        return _run(arguments)
    with screen_of(arguments) as words:
        answer = _run(words)
        if is_quiet() and isinstance(answer, str):
            return type(answer)(without_next(answer))
        return answer


def _run(arguments: list[str]) -> object:
    """Let a verb answer."""
    command = get_command(assemble(arguments[0] if arguments else ""))
    take_as_given(command)
    return command.main(arguments or ["--help"], prog_name="cutrace", standalone_mode=False)


def assemble(asked: str = "") -> typer.Typer:
    """The application: every module of `commands/`, not its folders, without an underscore; the
    one verb that is asked for, if there is such a one.
    """
    app = typer.Typer(cls=Verbs, help=ABOUT, add_completion=True, pretty_exceptions_enable=False)
    app.callback()(_options)
    found = iter_modules(commands.__path__)
    names = [m.name for m in found if not m.ispkg and not m.name.startswith("_")]
    wanted = [asked] if asked in names else names
    verbs = [import_module(f"{commands.__name__}.{name}") for name in wanted]
    for verb in sorted(verbs, key=lambda verb: PANELS.index(verb.PANEL)):
        name = verb.__name__.rpartition(".")[2]
        kind, shown = getattr(verb, "CLASS", Verb), "\n".join(verb.EXAMPLES)
        app.command(name, cls=kind, rich_help_panel=verb.PANEL, epilog=shown)(verb.command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"cutrace {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
    color: Annotated[
        str,
        typer.Option(
            metavar="|".join(WHEN), help="Colours and links; for every verb, anywhere on the line."
        ),
    ] = "auto",
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print the answer only; for every verb, anywhere on the line."
        ),
    ] = False,
) -> None:
    """Take the options before the verb; `screen_of` has read those about the screen."""

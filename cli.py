"""The command line: assembles the verbs of `commands/` and turns errors into exit codes.

0 done; 1 a check or the kernel failed; 2 cutrace could not; 130 Ctrl-C; 141 the reader of a pipe
went away. A verb returns what it prints. Heavy packages are imported inside verbs only.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated

import typer
from typer.main import get_command

from . import __doc__ as about
from . import __version__, commands
from .errors import CutraceError

PANELS = ("Record", "Ask", "Compare", "Look up")
"""The groups of verbs in the help, in order."""

INTERRUPTED = 130
PIPE_CLOSED = 141
COULD_NOT = 2


def main() -> None:
    """Run the command line and leave with its exit status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status. Messages go to stderr, never a traceback."""
    try:
        result = get_command(assemble()).main(
            list(arguments) or ["--help"], prog_name="cutrace", standalone_mode=False
        )
        if isinstance(result, str):
            sys.stdout.write(result if result.endswith("\n") else f"{result}\n")
        sys.stdout.flush()
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as leaving:  # how typer ends for a reader that went away, with status 1
        if isinstance(leaving.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except (KeyboardInterrupt, typer.Abort):
        print("cutrace: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        print(f"cutrace: {_message(error)}", file=sys.stderr)
        return getattr(error, "exit_status", COULD_NOT)


def assemble() -> typer.Typer:
    """The application: every module of `commands/` whose name has no underscore before it."""
    app = typer.Typer(help=about, add_completion=True, pretty_exceptions_enable=False)
    app.callback()(_options)
    names = [m.name for m in iter_modules(commands.__path__) if not m.name.startswith("_")]
    verbs = [import_module(f"{commands.__name__}.{name}") for name in names]
    for verb in sorted(verbs, key=lambda verb: PANELS.index(verb.PANEL)):
        name = verb.__name__.rpartition(".")[2]
        app.command(name, rich_help_panel=verb.PANEL)(verb.command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"cutrace {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Take the options before the verb."""


def _pipe_closed() -> int:
    """Give Python a place to flush what is left, so that it does not complain on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _message(error: Exception) -> str:
    """One message for whatever went wrong."""
    if isinstance(error, CutraceError):
        return str(error)
    if usage := getattr(error, "format_message", None):
        return f"{usage()} (`cutrace --help` and `cutrace VERB --help` explain)"
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    return f"internal error, please report it: {type(error).__name__}: {error}"

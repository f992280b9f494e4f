"""Assemble the command line's application from the verbs in this folder."""

from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.main import get_command

from .. import commands
from ..base.claim import sweep, sweep_scratch
from ..base.errors import CutraceError
from ..base.version import __version__
from .options.command_line import quote
from .options.help import Verbs
from .options.verb import PANELS, VERBS, command_of
from .terminal.screen import WHEN, is_quiet, screen_of, without_next

SOURCES = (".cu", ".ptx", ".py")
ABOUT = "What a CUDA kernel does to the memory system, and why, without a GPU."


def call(arguments: list[str]) -> object:
    """Parse one command line and run its verb; return the result, raise its exceptions.

    First remove temporary folders of killed commands: in the temporary directory and in the current
    folder.
    """
    sweep_scratch()
    sweep(Path())
    is_nvcc = arguments[:1] == ["nvcc"]  # all further arguments are the compiler's
    with nullcontext(arguments) if is_nvcc else screen_of(arguments) as words:
        if words and Path(words[0]).suffix in (*SOURCES, ".cutrace"):
            raise CutraceError(
                f"{words[0]}: a verb comes first, as in cutrace analyze {quote(words[0])}"
            )
        command = get_command(assemble(words[0] if words else ""))
        take_as_given(command)
        answer = command.main(words or ["--help"], prog_name="cutrace", standalone_mode=False)
        if is_quiet() and isinstance(answer, str):
            return type(answer)(without_next(answer))
        return answer


def assemble(verb_name: str = "") -> typer.Typer:
    """Return the application: the modules of `commands/` without a leading underscore.

    Subfolders are not verbs. With a `verb_name` only that verb is imported, if it exists.
    """
    app = typer.Typer(cls=Verbs, help=ABOUT, add_completion=True, pretty_exceptions_enable=False)
    app.callback()(_options)
    modules = iter_modules(commands.__path__)
    names = [m.name for m in modules if not m.ispkg and not m.name.startswith("_")]
    verb_names = [verb_name] if verb_name in names else names
    for name in verb_names:
        import_module(f"{commands.__name__}.{name}")
    verbs = sorted(verb_names, key=lambda name: PANELS.index(VERBS[name].panel))
    for name in verbs:
        spec = VERBS[name]
        examples = "\n".join(spec.examples)
        app.command(name, cls=spec.cls, rich_help_panel=spec.panel, epilog=examples)(
            command_of(spec)
        )
    return app


def _show_version(is_set: bool) -> None:
    if is_set:
        print(f"cutrace {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
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


_PLAIN: dict[Any, type] = {str: str, Path: Path}
_LISTS: dict[Any, type] = {list[str]: str, list[Path]: Path}


def take_as_given(command: Any) -> None:
    """Skip typer's conversion of texts, paths and absent options, for a command and its verbs."""
    parameters = command.get_params

    def plain(context: Any) -> list[Any]:
        options: list[Any] = parameters(context)  # includes `--help`, which is no parameter before
        for parameter in options:
            described = getattr(parameter, "type_descriptor", None)  # older releases lack it
            if described is not None and "process_value" not in vars(parameter):
                checked = parameter.process_value
                parameter.process_value = partial(_take, parameter, described.annotation, checked)
        return options

    command.get_params = plain
    for verb in getattr(command, "commands", {}).values():
        take_as_given(verb)


def _take(parameter: Any, kind: Any, checked: Any, context: Any, value: Any) -> Any:
    """Convert a value as typer would; leave missing values and those with checks to typer."""
    if value is None and not parameter.required:
        plain: Any = () if parameter.multiple or parameter.nargs == -1 else None
    elif kind in _PLAIN and isinstance(value, str):
        plain = _PLAIN[kind](value)
    elif kind in _LISTS and isinstance(value, (list, tuple)) and value:
        plain = [_LISTS[kind](item) for item in value]
    else:
        return checked(context, value)
    return parameter.callback(context, parameter, plain) if parameter.callback else plain

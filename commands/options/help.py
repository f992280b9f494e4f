"""Format help texts: summary, examples, arguments, and options in panels by purpose.

The verbs come before the options of `cutrace` itself. A value is shown by a capitalized placeholder
or by its choices; a flag has none.
"""

from collections.abc import Iterable, Iterator, Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup

from ..terminal.screen import has_colour

MOST, NAME_COLUMNS, INDENT = 100, 30, 2
"""Columns in all, columns left of an explanation, and columns of indentation."""
FILES = ("OUT", "SVG")
"""Placeholders of output files."""
NO_DEFAULT: tuple[object, ...] = (None, False, "", (), [])


SHARED = ("Recording options", "What is recorded", "Running options", "Replay options")
"""Panels of options that many verbs share: `--help-all` shows them, `--help` of a verb that replays
only those in COMMON.
"""
COMMON = ("--device", "-D", "-I")
OF_A_VERB = {"occupancy": ("--registers", "--cache-config")}
"""Shared options that the help of a verb shows too."""
HELP_ALL = "--help-all"


class Verb(TyperCommand):
    """A verb with this module's help format, and `--help-all`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer `--help-all`; leave the rest to typer."""
        if HELP_ALL in args:
            print(verb_help(self, ctx, whole=True), end="")
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(verb_help(self, ctx))


AFTER_DASHES = "cutrace.program"
"""The key of the words after `--` in typer's context."""


class TakesProgram(Verb):
    """A verb with arguments up to `--`; the rest is kept unparsed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the command line at `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[AFTER_DASHES] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


class TakesAll(Verb):
    """A verb that receives its command line unparsed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments unparsed."""
        ctx.meta[AFTER_DASHES] = tuple(args)
        return super().parse_args(ctx, [])


class Verbs(TyperGroup):
    """`cutrace` itself; its help lists the verbs."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(group_help(self, ctx))


def group_help(group: TyperGroup, ctx: Any) -> str:
    """Return the help of `cutrace`: verbs by panels, then the options."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for name, verb in group.commands.items():
        about = (verb.help or "").partition("\n")[0]
        panels.setdefault(getattr(verb, "rich_help_panel", ""), []).append((name, about))
    head = [f"Usage: {ctx.command_path} VERB ...", "", *_paragraph(group.help or "")]
    parts = [_panel(name, rows) for name, rows in panels.items()]
    parts.append(_panel("Options", [_row(p) for p in group.get_params(ctx)]))
    last = f"{ctx.command_path} VERB --help explains a verb, with examples."
    return "\n\n".join(("\n".join(head), *parts, last)) + "\n"


def verb_help(verb: TyperCommand, ctx: Any, whole: bool = False) -> str:
    """Return the help of a verb: summary, examples, arguments, and options by panels.

    Unless it is the `whole` help, options that many verbs share are only counted.
    """
    arguments = [p for p in verb.get_params(ctx) if isinstance(p, TyperArgument)]
    usage = " ".join((ctx.command_path, *map(_value, arguments), "[OPTIONS]"))
    parts = [f"Usage: {usage}", "\n".join(_paragraph(verb.help or ""))]
    if verb.epilog:
        parts.append("\n".join((_bold("Examples"), *(f"  {e}" for e in verb.epilog.split("\n")))))
    parts.append(_panel("Arguments", [(_value(p), _explain(p)) for p in arguments]))
    panels: dict[str, list[tuple[str, str]]] = {}
    left_out = 0
    shared = () if whole or not _replays(verb, ctx) else SHARED
    common = {*COMMON, *OF_A_VERB.get(ctx.info_name or "", ())}
    for parameter in verb.get_params(ctx):
        if parameter in arguments or getattr(parameter, "hidden", False):
            continue
        panel = getattr(parameter, "rich_help_panel", None) or "Options"
        if panel in shared and common.isdisjoint(parameter.opts):
            left_out += 1
            continue
        panels.setdefault(panel, []).append(_row(parameter))
    panels = {"Options": panels.pop("Options", []), **panels}
    parts += [_panel(name, rows) for name, rows in panels.items()]
    if left_out:
        parts.append(
            f"{ctx.command_path} {HELP_ALL} shows {left_out} more options, of recording and replay."
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _replays(verb: TyperCommand, ctx: Any) -> bool:
    panels = (getattr(parameter, "rich_help_panel", "") for parameter in verb.get_params(ctx))
    return "Replay options" in panels


def _row(parameter: Any) -> tuple[str, str]:
    """Return an option's spelling and its explanation."""
    names = sorted(parameter.opts, key=lambda name: (not name.startswith("--"), name))
    value = "" if getattr(parameter, "is_flag", False) else f" {_value(parameter)}"
    others = "".join(f", {name}" for name in (*names[1:], *parameter.secondary_opts))
    return f"{names[0]}{others}{value}", _explain(parameter)


def _value(parameter: Any) -> str:
    """Return a value's placeholder: its metavar, FILE, else the parameter's name."""
    if parameter.metavar:
        return str(parameter.metavar)
    is_argument = isinstance(parameter, TyperArgument)
    named = str(parameter.name.upper())
    if not is_argument:
        return "FILE" if named in FILES else named
    return named if parameter.required else f"[{named}]"


def _explain(parameter: Any) -> str:
    """Return the explanation, with the default if there is one."""
    default = parameter.default
    if default in NO_DEFAULT or default is True or callable(default):
        return parameter.help or ""
    return f"{(parameter.help or '').rstrip('.')} (default: {default})."


def _panel(name: str, rows: Sequence[tuple[str, str]]) -> str:
    """Format a heading and its rows: a long name gets its own line."""
    if not rows:
        return ""
    indent = min(NAME_COLUMNS, max(len(row[0]) for row in rows) + 2)
    return "\n".join((_bold(name), *_lines(rows, indent)))


def _lines(rows: Iterable[tuple[str, str]], indent: int) -> Iterator[str]:
    columns = max(20, _width() - indent - INDENT)
    for name, text in rows:
        first, *tail = wrap(text, columns) or [""]
        start = " " * INDENT + name
        if len(name) > indent - 2:
            yield from _choices(start)
            start = ""
        yield (start.ljust(indent + INDENT) + first).rstrip()
        yield from (" " * (indent + INDENT) + line for line in tail)


def _choices(text: str) -> Iterator[str]:
    """Break a list of choices into lines, after a |."""
    while len(text) > _width() and (end := text.rfind("|", 0, _width())) > 0:
        yield text[: end + 1]
        text = " " * 2 * INDENT + text[end + 1 :]
    yield text


def _paragraph(text: str) -> list[str]:
    return wrap(" ".join(text.split()), _width())


def _width() -> int:
    return min(MOST, get_terminal_size().columns)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if has_colour() else text

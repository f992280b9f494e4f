"""Write docs/api.md from the public functions and classes: `python scripts/write/api.py`."""

import builtins
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

import cutrace
from cutrace.models.replay.interface.options import ReplayOptions

ROOT = Path(__file__).parents[2]
HEAD = """# Python API

Made by `scripts/write/api.py` from the signatures and docstrings of `cutrace`. A trace is a path or
what `read_trace` gave; where a *subject* is asked for, a source does, too. What does not exist or
cannot be done raises `cutrace.CutraceError`, whose text says what was expected.
"""
VALUES = (
    ("analyzer.profile", "Profile"),
    ("analyzer.launch_profile", "LaunchProfile"),
    ("analyzer.evidence.evidence", "Finding"),
    ("analyzer.why.explain", "Explanation"),
    ("analyzer.time.estimate", "Estimate"),
    ("analyzer.counting.bounds", "Bound"),
    ("commands.api.advice", "Advice"),
    ("commands.api.check", "CheckResult"),
    ("commands.api.occupancy", "Occupancies"),
    ("commands.api.report", "ReportPage"),
    ("commands.api.why", "Why"),
    ("traces.reader", "Trace"),
    ("traces.reader", "LaunchTrace"),
    ("traces.schema", "Launch"),
)
"""What the functions answer with."""
MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
OLDER_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")
"""What NumPy before 2.5 calls NDArray."""
NUMPY = {
    name: MODULE.sub("", str(kind)).removeprefix("Union[").removesuffix("]")
    for name, kind in (("ArrayLike", ArrayLike), ("DTypeLike", DTypeLike))
}
"""What numpy's unions are called in sources."""
DEFAULT = re.compile(r"<function [^>]*>|<factory>")


def text() -> str:
    """Return the document."""
    public = [(name, getattr(cutrace, name)) for name in cutrace.__all__]
    found = [_class(n, v) if inspect.isclass(v) else _function(n, v) for n, v in public]
    values = (_class(n, getattr(import_module(f"cutrace.{m}"), n)) for m, n in VALUES)
    whole = "\n".join((HEAD, *found, _options(), "## What they answer with\n", *values))
    return re.sub(r"\n{3,}", "\n\n", whole).rstrip() + "\n"


def _function(name: str, value: Any) -> str:
    return f"## {name}\n\n{_signature(name, value)}\n{_told(value)}"


def _class(name: str, value: type) -> str:
    """A class, its constructor if it is public itself, and what it has."""
    head = f"## {name}\n\n"
    if name in cutrace.__all__ and not issubclass(value, Exception):
        head += _signature(name, value) + "\n"
    return head + _told(value) + _fields(value) + "".join(_members(value))


def _fields(value: type) -> str:
    """The fields of a dataclass with their types."""
    if not is_dataclass(value):
        return ""
    shown = [f"{f.name}: {_type(f.type)}" for f in fields(value) if not f.name.startswith("_")]
    return "```text\n" + "\n".join(shown) + "\n```\n" if shown else ""


def _members(value: type) -> Iterator[str]:
    for name, member in vars(value).items():
        plain = member.fget if isinstance(member, property) else member
        plain = plain.func if isinstance(plain, cached_property) else plain
        plain = getattr(plain, "__func__", plain)
        if name.startswith("_") or not callable(plain) or not inspect.getdoc(plain):
            continue
        if plain is member or inspect.isroutine(member):
            yield f"### {value.__name__}.{name}\n\n{_signature(name, plain)}\n{_told(plain)}"
        else:
            kind = inspect.signature(plain).return_annotation
            line = f"```text\n{name}: {_type(kind)}\n```\n"
            yield f"### {value.__name__}.{name}\n\n{line}{_told(plain)}"


def _signature(name: str, value: Any) -> str:
    """The call with its types, an argument a line where one line is too short."""
    found = inspect.signature(value)
    words = [
        DEFAULT.sub("...", _plain(str(p))) for p in found.parameters.values() if p.name != "self"
    ]
    if any(p.kind is p.KEYWORD_ONLY for p in found.parameters.values()):
        first = next(n for n, p in enumerate(_arguments(found)) if p.kind is p.KEYWORD_ONLY)
        words.insert(first, "*")
    ends = found.return_annotation
    last = "" if ends is inspect.Signature.empty or inspect.isclass(value) else f" -> {_type(ends)}"
    line = f"{name}({', '.join(words)}){last}"
    if len(line) > 100:
        line = f"{name}(\n    " + ",\n    ".join(words) + f",\n){last}"
    return f"```text\n{line}\n```"


def _arguments(found: inspect.Signature) -> list[inspect.Parameter]:
    return [p for p in found.parameters.values() if p.name != "self"]


def _type(annotation: Any) -> str:
    """A type as the source has it, without modules."""
    is_plain = isinstance(annotation, type) and annotation.__module__ == builtins.__name__
    return annotation.__name__ if is_plain else _plain(str(annotation))


def _plain(written: str) -> str:
    named = re.sub(r"<class '([^']*)'>", r"\1", written)
    short = MODULE.sub("", named)
    for name, parts in NUMPY.items():
        short = short.replace(parts, name)
    short = OLDER_ARRAY.sub(r"NDArray[\1]", short)
    short = re.sub(r"\bUnion\[([^][]*)\]", lambda m: m[1].replace(", ", " | "), short)
    return short.replace("'", "") if "= '" not in named else short


def _told(value: Any) -> str:
    """The docstring."""
    return f"\n{inspect.getdoc(value) or ''}\n\n"


def _options() -> str:
    """The options of a replay, which many functions take by name."""
    rows = []
    for each in fields(ReplayOptions):
        option = each.metadata.get("option")
        if option:
            kind = _plain(str(each.type)).replace("|", "\\|")
            rows.append(f"| `{each.name}` | `{kind}` | {option.help} |")
    head = "## Options of a replay\n\n`**replay` and `**options` above stand for these.\n\n"
    return head + "| name | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write the document."""
    (ROOT / "docs" / "api.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

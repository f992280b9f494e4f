"""Write docs/api.md from the public functions and classes: `python scripts/write/api.py`."""

import builtins
import inspect
import re
import textwrap
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

`scripts/write/api.py` writes this page from the signatures of `cutrace` and the first sentence of
each docstring. `help(cutrace.analyze)` prints a whole docstring, with shapes, units, defaults and
errors. A trace is a path or the result of `read_trace`. A *subject* is a trace, or a source, which
is recorded first. Functions raise `cutrace.CutraceError`, which says what they expected.
"""
VALUES = (
    ("analyzer.profile", "Profile"),
    ("analyzer.launch_profile", "LaunchProfile"),
    ("analyzer.evidence.evidence", "Finding"),
    ("analyzer.why.explain", "Explanation"),
    ("analyzer.time.estimate", "Estimate"),
    ("analyzer.counting.bounds", "Bound"),
    ("commands.advise", "Advice"),
    ("commands.check", "CheckResult"),
    ("commands.occupancy", "Occupancies"),
    ("commands.report", "ReportPage"),
    ("commands.why", "Why"),
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
WIDTH = 118
HEADING: Any = {"initial_indent": "# ", "subsequent_indent": "# "}
VALUES_HEAD = (
    "## Values\n\nThe classes of the functions' results: fields, then methods and properties.\n"
)
COMMENT: Any = {"initial_indent": "    # ", "subsequent_indent": "    # "}
INTERNAL = {
    "TraceWriter": {"withdraw", "snapshot"},
    "LaunchProfile": {"origin", "repeated"},
    "Advice": {"items"},
    "Occupancies": {"items"},
    "Why": {"items"},
    "Trace": {"no_launch"},
    "LaunchTrace": {
        *("place", "check_unchanged", "forget", "pattern_store", "path_store", "block_ranges"),
        *("access_batches_of", "lanes_on_batches", "count", "batches"),
    },
    "Launch": {"assembled", "assembled_for"},
}
"""Members of each class that only cutrace itself uses."""
DEFAULT = re.compile(r"<function [^>]*>|<factory>")


def text() -> str:
    """Return the document."""
    public = [(name, getattr(cutrace, name)) for name in cutrace.__all__]
    names = [_class(n, v) if inspect.isclass(v) else _function(n, v) for n, v in public]
    values = [_value(n, getattr(import_module(f"cutrace.{m}"), n)) for m, n in VALUES]
    block = "\n\n".join(values)
    parts = (HEAD, "## Functions and classes\n", *names, _options(), VALUES_HEAD)
    return "\n".join((*parts, f"```text\n{block}\n```\n"))


def _value(name: str, value: type) -> str:
    """A class that functions return: its name, summary, fields and what it has."""
    about = textwrap.fill(f"{name}: {_summary(value)}", WIDTH, **HEADING)
    return "\n".join((about, *_fields(value), *_members(value)))


def _function(name: str, value: Any) -> str:
    return _block(name, value, [_signature(name, value)])


def _block(name: str, value: Any, lines: list[str]) -> str:
    """A name with its summary as a comment, its signature and what it has."""
    about = textwrap.fill(_summary(value), WIDTH, **HEADING)
    return "\n".join((f"### {name}\n", "```text", about, *lines, "```", ""))


def _class(name: str, value: type) -> str:
    """A class: its constructor if it is public itself, its fields and what it has."""
    lines = [*_fields(value), *_members(value)]
    if name in cutrace.__all__ and not issubclass(value, Exception):
        lines.insert(0, _signature(name, value))
    return _block(name, value, lines)


def _fields(value: type) -> Iterator[str]:
    """The fields of a dataclass with their types."""
    if is_dataclass(value):
        shown = [f for f in fields(value) if not f.name.startswith("_")]
        listed = ", ".join(f"{f.name}: {_type(f.type)}" for f in shown)
        yield textwrap.fill(listed, WIDTH, subsequent_indent="    ")


def _members(value: type) -> Iterator[str]:
    """The methods and properties, each with its summary."""
    for name, member in vars(value).items():
        plain = member.fget if isinstance(member, property) else member
        plain = plain.func if isinstance(plain, cached_property) else plain
        plain = getattr(plain, "__func__", plain)
        if name.startswith("_") or not callable(plain) or not inspect.getdoc(plain):
            continue
        if name in INTERNAL.get(value.__name__, ()):
            continue
        head = f".{name}: {_type(inspect.signature(plain).return_annotation)}"
        if not isinstance(member, (property, cached_property)):
            head = _signature(f".{name}", plain)
        about = _summary(plain).removeprefix("Return ")
        yield f"{head}  # {about}" if len(head + about) < WIDTH - 4 else head
        if len(head + about) >= WIDTH - 4:
            yield textwrap.fill(about, WIDTH, **COMMENT)


def _signature(name: str, value: Any) -> str:
    """The call with its types."""
    found = inspect.signature(value)
    words = [
        DEFAULT.sub("...", _plain(str(p))) for p in found.parameters.values() if p.name != "self"
    ]
    if any(p.kind is p.KEYWORD_ONLY for p in found.parameters.values()):
        first = next(n for n, p in enumerate(_arguments(found)) if p.kind is p.KEYWORD_ONLY)
        words.insert(first, "*")
    ends = found.return_annotation
    last = "" if ends is inspect.Signature.empty or inspect.isclass(value) else f" -> {_type(ends)}"
    return textwrap.fill(f"{name}({', '.join(words)}){last}", WIDTH, subsequent_indent="        ")


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


def _summary(value: Any) -> str:
    """The first paragraph of the docstring."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _options() -> str:
    """The options of a replay, which many functions take by name."""
    rows = []
    for each in fields(ReplayOptions):
        option = each.metadata.get("option")
        if option:
            kind = _plain(str(each.type)).replace("|", "\\|")
            rows.append(f"| `{each.name}` | `{kind}` | {option.help} |")
    head = "### Options of a replay\n\n`**replay` and `**options` above stand for these.\n\n"
    return head + "| name | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write the document."""
    (ROOT / "docs" / "api.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

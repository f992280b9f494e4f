"""Launches that hide in macros: `LAUNCH(kernel<T>, n)` written out, so that they can be read.

Only function-like macros that lead to a `<<<` are written out, for looking; the text that is
compiled keeps its macros.
"""

import re
from collections.abc import Iterator

from ....lazy_dataclass import dataclass

_DEFINE = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)((?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_LIMIT = 500  # replacements: macros that call each other without end are left alone


@dataclass(frozen=True, slots=True)
class _Macro:
    parameters: tuple[str, ...]
    body: str


def write_out_launches(text: str) -> str:
    """The text with the macros that launch kernels replaced by what they stand for."""
    macros = _launching_macros(text)
    if not macros:
        return text
    rest = _DEFINE.sub(lambda found: "" if found[1] in macros else found[0], text)
    names = re.compile(rf"\b({'|'.join(map(re.escape, macros))})\s*\(")
    for _ in range(_LIMIT):
        found = names.search(rest)
        if not found:
            break
        arguments, end = _arguments(rest, found.end())
        written = _replace(macros[found[1]], arguments)
        rest = f"{rest[: found.start()]}{written}{rest[end:]}"
    return rest


def _launching_macros(text: str) -> dict[str, _Macro]:
    """The macros whose bodies launch, or use one that does."""
    defined = {
        name: _Macro(tuple(each.strip() for each in listed.split(",")), body.replace("\\\n", " \n"))
        for name, listed, body in _DEFINE.findall(text)
    }
    found = {name for name, macro in defined.items() if "<<<" in macro.body}
    while (
        more := {n for n, m in defined.items() if set(re.findall(r"\w+", m.body)) & found} - found
    ):
        found |= more
    return {name: macro for name, macro in defined.items() if name in found}


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """The arguments of an invocation whose parenthesis opens before `start`, and where it ends."""
    depth, at, found = 1, start, [""]
    while at < len(text) and depth:
        letter = text[at]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 1:
            found.append("")
        elif depth:
            found[-1] += letter
        at += 1
    return [each.strip() for each in found], at


def _replace(macro: _Macro, arguments: list[str]) -> str:
    values = dict(_pairs(macro.parameters, arguments))
    body = re.sub(r"#?\b\w+\b", lambda word: values.get(word[0], word[0]), macro.body)
    return re.sub(r"\s*##\s*", "", body)


def _pairs(parameters: tuple[str, ...], arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Each parameter with its argument; the last one of `...` takes the rest."""
    for at, parameter in enumerate(parameters):
        if parameter.endswith("..."):
            yield parameter.removesuffix("...") or "__VA_ARGS__", ", ".join(arguments[at:])
        elif at < len(arguments):
            yield parameter, arguments[at]

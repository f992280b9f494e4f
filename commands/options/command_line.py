"""Fields of a dataclass as options, and options as a quoted command line."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import PurePath
from typing import Any, get_args, get_origin

from ...base.options import Option, changed
from ...traces.address import as_given


def device_of(codes: Iterable[str]) -> str:
    """Return the option that names a device for launches of one machine code; else nothing.

    >>> device_of(["sm_89", "", "sm_89"]), device_of(["ptx"]), device_of(["sm_80", "sm_90"])
    (' -d sm_89', '', '')
    """
    machine = {code for code in codes if code.startswith("sm_")}
    return f" -d {machine.pop()}" if len(machine) == 1 else ""


def quote(word: object) -> str:
    """Return the word, in double quotes if a shell needs them; for bash, zsh and cmd.

    >>> quote("reverse.cu"), quote("f<<<1, 2>>>()")
    ('reverse.cu', '"f<<<1, 2>>>()"')
    """
    text = as_given(word) if isinstance(word, PurePath) else str(word)
    if re.fullmatch(r"[\w@%+=:,./-]+", text):
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'


def typed(options: object) -> str:
    """Return the options as command-line text; empty if all have their defaults, or for None."""
    if options is None:
        return ""
    changes = changed(options)
    words = [
        w
        for f in option_fields(type(options))
        if f.name in changes and f.metadata["option"].typed
        for w in _typed(f, changes[f.name])
    ]
    return "".join(f" {quote(word)}" for word in words)


def option_fields(options: Any) -> list[Field[Any]]:
    """Return the fields that are options, a class's own before inherited ones."""
    every = (field for field in fields(options) if "option" in field.metadata)
    return sorted(every, key=lambda field: field.name not in options.__annotations__)


def item_type(kind: Any) -> Any:
    """Return the type of one value of a repeatable option; None for other options."""
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Mapping:
            return str
        if get_origin(one) in (Sequence, tuple):
            return get_args(one)[0]
    return None


def _typed(field: Field[Any], value: Any) -> list[str]:
    option: Option = field.metadata["option"]
    name = option.names[-1] if option.names else f"--{dashed(field.name)}"
    if isinstance(value, bool):
        return [name if value else f"--no-{dashed(field.name)}"]
    if isinstance(value, Mapping):
        return [word for k, v in value.items() for word in (name, f"{k}={v}")]
    values = [value] if isinstance(value, str | int | float) else [*value]
    if option.commas:
        return [name, ",".join(map(str, values))]
    if option.prefix:
        return [f"{option.prefix}{each}" for each in values]
    return [word for each in values for word in (name, str(each))]


def dashed(name: str) -> str:
    """Return a field's name as an option has it."""
    return name.replace("_", "-")

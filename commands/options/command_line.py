"""Convert dataclass fields to a verb's options, and options back to a quoted command line."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import PurePath
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from ...base.errors import CutraceError
from ...base.options import Option, changed
from ...traces.address import as_given


def quote(word: object) -> str:
    """Return the word, in double quotes if a shell needs them; for bash, zsh and cmd.

    >>> quote("reverse.cu"), quote("f<<<1, 2>>>()")
    ('reverse.cu', '"f<<<1, 2>>>()"')
    """
    text = as_given(word) if isinstance(word, PurePath) else str(word)
    if re.fullmatch(r"[\w@%+=:,./-]+", text):
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'


Options = TypeVar("Options")
Complete = Callable[..., list[str]]


def takes(
    options: Callable[[], Options], name: str, panel: str, complete: Mapping[str, Complete] = {}
) -> Callable[[Callable[..., Any]], Any]:
    """Add the fields of a dataclass as options to a verb, which gets the object as argument `name`.

    `complete` maps a field to its shell completion.
    """
    own = {field.name: field for field in _options(options)}
    kinds = get_type_hints(options)
    added = [_parameter(f, kinds[f.name], panel, complete.get(f.name)) for f in own.values()]

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(verb)
        def call(**values: Any) -> Any:
            words = {key: values.pop(key) for key in own}
            read = {k: _read(own[k], kinds[k], v) for k, v in words.items() if v not in (None, [])}
            return verb(**values, **{name: options(**read)})

        before = [p for p in signature(verb).parameters.values() if p.name != name]
        parameters = [*before, *added]
        call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return decorate


def typed(options: object) -> str:
    """Return the options as command-line text; empty if all have their defaults."""
    changes = changed(options)
    words = [
        w for f in _options(type(options)) if f.name in changes for w in _typed(f, changes[f.name])
    ]
    return "".join(f" {quote(word)}" for word in words)


def _options(options: Any) -> list[Field[Any]]:
    """Return the fields that are options, a class's own before inherited ones."""
    option_fields = (field for field in fields(options) if "option" in field.metadata)
    return sorted(option_fields, key=lambda field: field.name not in options.__annotations__)


def _parameter(field: Field[Any], kind: Any, panel: str, complete: Complete | None) -> Parameter:
    """Return typer's parameter for a field; an absent option is None."""
    option: Option = field.metadata["option"]
    more: dict[str, Any] = {"metavar": option.metavar, "help": option.help}
    more |= {"autocompletion": complete} if complete else {}
    names = option.names
    if kind is bool:
        names = names or (f"--{'no-' * (field.default is True)}{_dashed(field.name)}",)
    elif not names:
        names = (f"--{_dashed(field.name)}",)
    parser_type = _annotation(kind)
    parameter = typer.Option(*names, rich_help_panel=option.panel or panel, **more)
    return Parameter(
        field.name,
        Parameter.KEYWORD_ONLY,
        default=False if kind is bool else None,
        annotation=Annotated[parser_type, parameter],
    )


def _annotation(kind: Any) -> Any:
    """Return typer's annotation for a field's type."""
    many = _many(kind)
    return list[many[0]] | None if many else kind if kind is bool else kind | None  # type: ignore


def _many(kind: Any) -> tuple[Any, ...]:
    """Return the element type of a repeatable option, else an empty tuple."""
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Mapping:
            return (str,)
        if get_origin(one) in (Sequence, tuple):
            return (get_args(one)[0],)
    return ()


def _read(field: Field[Any], kind: Any, value: Any) -> Any:
    """Convert a typed value to the field's type."""
    option: Option = field.metadata["option"]
    if kind is bool:
        return value if field.default is False else not value
    if get_origin(kind) is Mapping:
        return dict(_pair(_dashed(field.name), text, option.metavar or "") for text in value)
    if option.commas:
        return tuple(word for text in value for word in text.split(",") if word)
    return tuple(value) if _many(kind) else value


def _pair(option: str, text: str, expected: str) -> tuple[str, str]:
    """Parse `stage.key=value` into a pair."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise CutraceError(f"--{option} {text}: expected {expected}")
    return key, value


def _typed(field: Field[Any], value: Any) -> list[str]:
    option: Option = field.metadata["option"]
    name = option.names[-1] if option.names else f"--{_dashed(field.name)}"
    if isinstance(value, bool):
        return [name if value else f"--no-{_dashed(field.name)}"]
    if isinstance(value, Mapping):
        return [word for k, v in value.items() for word in (name, f"{k}={v}")]
    values = [value] if isinstance(value, str | int | float) else [*value]
    if option.commas:
        return [name, ",".join(map(str, values))]
    if option.prefix:
        return [f"{option.prefix}{each}" for each in values]
    return [word for each in values for word in (name, str(each))]


def _dashed(name: str) -> str:
    return name.replace("_", "-")

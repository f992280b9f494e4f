"""Options: one field of a frozen dataclass defines an option for the command line and Python.

The field has the option's name, type, default and help. `commands/options/command_line.py` makes a
verb's options from the fields, `taking` makes them keyword arguments of a function, and the object
is passed on unchanged to the code that uses it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import wraps
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from .dataclass import dataclass

Subject = TypeVar("Subject")
Options = TypeVar("Options")
Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=Callable[..., Any])
P = ParamSpec("P")

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Default of a repeatable option with values NAME=VALUE."""


@dataclass(frozen=True, slots=True)
class Option:
    """The command line's description of a field.

    `names` replace the default name, --field-name. With `commas`, all values are in one word; with
    a `prefix`, each follows it, as in -DN=4; else each is a word after the name. `choices` are all
    values that it takes, if two classes have an option of one name. A command line that cutrace
    suggests leaves it out unless it is `typed`.
    """

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()
    panel: str = ""
    prefix: str = ""
    commas: bool = False
    choices: tuple[str, ...] = ()
    typed: bool = True


def option(
    default: Any,
    help: str,
    metavar: str | None = None,
    *names: str,
    panel: str = "",
    prefix: str = "",
    commas: bool = False,
    choices: tuple[str, ...] = (),
    typed: bool = True,
) -> Any:
    """Return a dataclass field that is also an option of the command line."""
    spec = Option(help, metavar, names, panel, prefix, commas, choices, typed)
    if isinstance(default, Mapping):
        return field(default_factory=dict, metadata={"option": spec})
    return field(default=default, metadata={"option": spec})


def taking(
    options: Callable[P, Options],
) -> Callable[[Callable[[Subject, Options], Answer]], Callable[Concatenate[Subject, P], Answer]]:
    """Let callers pass the fields of `options` as keyword arguments of a function."""

    factory_names = {f.name for f in fields(options) if f.default_factory is not MISSING}  # type: ignore

    def decorate(
        function: Callable[[Subject, Options], Answer],
    ) -> Callable[Concatenate[Subject, P], Answer]:
        own = signature(function)
        first = next(iter(own.parameters.values()))
        option_parameters = signature(options).parameters.values()
        whole = own.replace(
            parameters=(
                first,
                *(
                    p.replace(default={}) if p.name in factory_names else p
                    for p in option_parameters
                ),
            )
        )

        @wraps(function)
        def call(*positionals: Any, **named: Any) -> Answer:
            try:
                whole.bind(*positionals, **named)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            subject, *values = positionals or (named.pop(first.name),)
            return function(subject, options(*values, **named))

        call.__signature__ = whole  # type: ignore[attr-defined]
        return call

    return decorate


def keywords(options: type) -> Callable[[Function], Function]:
    """Show the keys of the TypedDict that types a function's `**options` in its signature."""

    def decorate(function: Function) -> Function:
        own = signature(function)
        *parameters, _ = own.parameters.values()
        for key, kind in get_type_hints(options).items():
            parameters.append(Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=kind))
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


def changed(options: Any) -> dict[str, Any]:
    """Return the option fields that differ from their defaults, by name."""
    default = type(options)()
    fields: Sequence[str] = tuple(options.__dataclass_fields__)
    values = {name: getattr(options, name) for name in fields}
    return {name: value for name, value in values.items() if value != getattr(default, name)}

"""Verbs: one function each, from which the command line and the Python function are made.

A verb is a function in a file of `commands/`, marked by `@verb`. Its keywords are annotated: by
`argument`, `value` or `flag` with what the help says of them, or by nothing where only Python has
them. A keyword whose type is a class of options (`ReplayOptions`, `Reading`, ...) stands for all
its fields, on the command line and in Python. The docstring is the help, up to `In Python`.

What the function returns is printed if it is text. Else a function marked by `@shown(verb)` makes
text of it; its further keywords are options of the command line alone, such as `--format`. A verb
with a keyword of type `Line` is one of the command line alone.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import Field, replace
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_origin, get_type_hints

import typer

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.frames import require_frames
from ...base.options import Option
from ...base.scope import scope
from .command_line import dashed, item_type, option_fields, quote, typed
from .complete import Complete, devices, kernels, last_of
from .help import AFTER_DASHES, TakesProgram, Verb

if TYPE_CHECKING:
    from os import PathLike

    from ...traces.reader import Trace

PANELS = ("Record", "Ask", "Compare", "Look up")
"""Groups of verbs in the help, in order."""
GROUPS: Mapping[str, tuple[str, Mapping[str, Complete]]] = {
    "ReplayOptions": ("Replay options", {"device": last_of(devices)}),
    "Recording": ("Recording options", {"launch": kernels}),
    "Reading": ("Recording options", {"launch": kernels}),
    "Selection": ("Options", {"launch": kernels}),
    "CodeSelection": ("Options", {"launch": kernels}),
    "RunCode": ("Recording options", {}),
}
"""Classes of options, with the panel of the help and the shell completion of fields.

By name: a verb that takes none of them does not import them.
"""
Function = TypeVar("Function", bound=Callable[..., Any])


def argument(help: str, metavar: str | None = None, complete: Complete | None = None) -> Any:
    """Describe a keyword that is an argument of the command line."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete)


def value(
    help: str, metavar: str | None, *names: str, complete: Complete | None = None, **more: Any
) -> Any:
    """Describe a keyword that is an option with a value."""
    return typer.Option(*names, metavar=metavar, help=help, autocompletion=complete, **more)


def flag(help: str, *names: str) -> Any:
    """Describe a keyword that is an option without a value."""
    return typer.Option(*names, help=help)


@dataclass(frozen=True, slots=True)
class Typed:
    """How a keyword is typed, where that differs from Python: as a `kind` that `read` converts.

    `check` raises `CutraceError` for an invalid value, before the verb begins. The help has options
    in order of their `place`.
    """

    kind: Any = None
    read: Callable[[Any], Any] | None = None
    check: Callable[[Any], object] | None = None
    place: int = 0


class Program:
    """Marks the keyword that receives the words after `--`; None without `--`."""


ProgramWords: TypeAlias = Annotated[tuple[str, ...] | None, Program()]
AS_PATH = Typed(Path)
Subject: TypeAlias = Annotated[
    "Trace | str | PathLike[str]",
    argument("A trace, or a source to record for this once", "SOURCE"),
    AS_PATH,
]
SubjectOrProgram: TypeAlias = Annotated[
    "Trace | str | PathLike[str] | None",
    argument(
        "A trace, or a source or program to record for this once", "[SOURCE] [-- PROGRAM ARGUMENTS]"
    ),
    Typed(Path | None),
]
TraceFile: TypeAlias = Annotated[
    "Trace | str | PathLike[str]", argument("A trace", "TRACE"), AS_PATH
]


@dataclass(frozen=True, slots=True)
class Line:
    """A command line: the values of its options and arguments, as typed."""

    values: Mapping[str, Any]
    replay: Any
    recording: Any
    program: tuple[str, ...] | None

    @property
    def first(self) -> str:
        """The first line of a report: the device, if the command line selects none."""
        from .replay import first_line

        return first_line(self.replay)

    @property
    def suffix(self) -> str:
        """The end of a command line with a program: ` -- ./app 1024`."""
        words = () if self.program is None else ("--", *self.program)
        return "".join(f" {quote(word)}" for word in words)

    def again(self, verb: str, *words: object, replay: bool = True) -> str:
        """Return the command line of a verb with these words and the options of this line."""
        named = "".join(f" {quote(word)}" for word in words if word)
        options = (self.recording, self.replay if replay else None)
        return f"cutrace {verb}{named}{''.join(map(typed, options))}"


@dataclass(slots=True)
class VerbSpec:
    """A verb: its function, the group and the examples of its help, and what shows its answer."""

    function: Callable[..., Any]
    panel: str
    examples: tuple[str, ...]
    cls: type[Verb]
    groups: Mapping[str, Any]
    show: Callable[..., Any] | None = None
    is_lazy: bool = False


VERBS: dict[str, VerbSpec] = {}
"""The verbs that are imported, by the name of their file."""


def verb(
    panel: str, *examples: str, cls: type[Verb] | None = None
) -> Callable[[Function], Function]:
    """Make a function a verb, in one of PANELS; `examples` are command lines for its help."""

    def decorate(function: Function) -> Function:
        own = _signature_of(function)
        groups = {p.name: p.annotation for p in own.parameters.values() if _is_group(p)}
        takes = cls or (TakesProgram if _program_keyword(function) else Verb)
        VERBS[_name(function)] = VerbSpec(function, panel, examples, takes, groups)
        fields = {name: {*kind.__dataclass_fields__} for name, kind in groups.items()}

        @wraps(function)
        def call(*positionals: Any, **named: Any) -> Any:
            if "replay" in groups:
                require_frames()
            for name, kind in groups.items():
                values = {
                    key: _as_field(value)
                    for key, value in named.items()
                    if key in fields[name]
                    and key not in own.parameters
                    and _is_for(kind, groups.values(), key, value)
                }
                if values:
                    named[name] = replace(named.get(name) or kind(), **values)
            for key in set().union(*fields.values()) - own.parameters.keys():
                named.pop(key, None)
            if unknown := named.keys() - own.parameters.keys():
                raise TypeError(f"{function.__name__}() has no keyword {min(unknown)!r}")
            return function(*positionals, **named)

        shown = [_plain(p) for p in own.parameters.values() if p.name not in groups]
        call.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def shown(of: Callable[..., Any], is_lazy: bool = False) -> Callable[[Function], Function]:
    """Make a function the one that makes text of a verb's answer, on the command line.

    If it is lazy, it gets the answer as a function, and need not call it.
    """

    def decorate(function: Function) -> Function:
        spec = VERBS[_name(of)]
        spec.show, spec.is_lazy = function, is_lazy
        return function

    return decorate


def command_of(spec: VerbSpec) -> Callable[..., Any]:
    """Return a verb as a function from which typer makes a command."""
    own, after = _typed_keywords(spec.function), _typed_keywords(spec.show) if spec.show else {}
    keywords = {**own, **after}
    program, given = _program_keyword(spec.function), _signature_of(spec.function).parameters
    options: dict[str, tuple[Field[Any], Any, Parameter]] = {}
    for kind in spec.groups.values():
        own_options = _options_of(kind)
        for name in options.keys() & own_options.keys():
            own_options = {**own_options, name: _merge(options[name], own_options[name])}
        options |= own_options

    def run(**values: Any) -> Any:
        words = values.pop("ctx").meta.get(AFTER_DASHES) if program else None
        for name, (_, typing) in keywords.items():
            if typing.check:
                typing.check(values[name])
        read = {name: _read_keyword(values[name], *keywords[name]) for name in keywords}
        groups = {
            name: kind(
                **{
                    f.name: _read_field(f, options[f.name][1], values[f.name])
                    for f in option_fields(kind)
                    if values[f.name] not in (None, [])
                    and _is_for(kind, spec.groups.values(), f.name, values[f.name])
                }
            )
            for name, kind in spec.groups.items()
        }
        about = next((value for name, value in groups.items() if name != "replay"), None)
        replayed = _with_device_of_code(groups["replay"], about) if "replay" in groups else None
        groups |= {"replay": replayed} if replayed else {}
        line = Line(values, replayed, about, words)
        named = {**{name: read[name] for name in own}, **groups}
        named |= {program: words} if program else {}
        named |= {p.name: line for p in given.values() if p.annotation is Line}
        with scope(), _counters_of(replayed):
            if spec.show is None:
                return spec.function(**named)
            answer = partial(spec.function, **named)
            more = {name: read[name] for name in after}
            return spec.show(answer if spec.is_lazy else answer(), line, **more)

    parameters = sorted((p for p, _ in keywords.values()), key=lambda p: keywords[p.name][1].place)
    if program:
        context = Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters.insert(0, context)
    parameters += [parameter for _, _, parameter in options.values()]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = help_of(spec.function)
    return run


def help_of(function: Callable[..., Any]) -> str:
    """Return the part of a verb's docstring that is its help."""
    return (function.__doc__ or "").partition("In Python")[0].rstrip()


_signature_of = cache(signature)


def _name(function: Callable[..., Any]) -> str:
    """Return a verb's name: its file's."""
    return function.__module__.rpartition(".")[2]


def _is_group(parameter: Parameter) -> bool:
    return isinstance(parameter.annotation, type) and parameter.annotation.__name__ in GROUPS


def _program_keyword(function: Callable[..., Any]) -> str:
    """Return the name of the keyword for the words after `--`; empty if there is none."""
    for parameter in _signature_of(function).parameters.values():
        if any(isinstance(each, Program) for each in _metadata(parameter)):
            return parameter.name
    return ""


def _metadata(parameter: Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def _plain(parameter: Parameter) -> Parameter:
    """Return a parameter with its type alone, without what describes it."""
    kind = parameter.annotation
    kind = kind.__origin__ if _metadata(parameter) else kind
    return parameter.replace(annotation=getattr(kind, "__forward_arg__", kind))


def _as_field(value: Any) -> Any:
    """Return a Python argument as the value of a field: lists as tuples."""
    return tuple(value) if isinstance(value, list) else value


def _typed_keywords(function: Callable[..., Any]) -> dict[str, tuple[Parameter, Typed]]:
    """Return the keywords that the command line has, each as typer's parameter."""
    keywords = {}
    for parameter in _signature_of(function).parameters.values():
        described = _metadata(parameter)
        info = next((each for each in described if hasattr(each, "autocompletion")), None)
        if info is None:
            continue
        typing = next((each for each in reversed(described) if isinstance(each, Typed)), Typed())
        kind = typing.kind or parameter.annotation.__origin__
        if kind is bool and not (info.param_decls or isinstance(info.default, str)):
            info.param_decls = (f"--{dashed(parameter.name)}",)
        default = None if parameter.default in ((), {}) else parameter.default
        made = Parameter(
            parameter.name,
            Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, info],
        )
        keywords[parameter.name] = made, typing
    return keywords


def _read_keyword(value: Any, parameter: Parameter, typing: Typed) -> Any:
    """Convert a typed value for the function; the default stays as it is."""
    return typing.read(value) if typing.read and value is not None else value


def _with_device_of_code(replay: Any, recording: Any) -> Any:
    """Return the options of a replay, with the device of the machine code that is recorded if the
    command line and the environment name none.
    """
    code = getattr(recording, "code", "")
    is_open = not replay.devices and not environ.get("CUTRACE_DEVICE")
    return replace(replay, device=(code,)) if is_open and code.startswith("sm_") else replay


def _counters_of(options: Any) -> Any:
    """Register the counters of device files while a verb runs."""
    if options is None or not options.devices:
        return nullcontext()
    # by name: a recording, which is a verb as well, must do without the analyzer
    vocabulary = import_module("...analyzer.counting.vocabulary", __package__)
    return vocabulary.with_counters_of(options.devices)


@cache
def _options_of(kind: Any) -> dict[str, tuple[Field[Any], Any, Parameter]]:
    """Return the options of a class by name: the field, its type, and typer's parameter."""
    hints = get_type_hints(kind)
    return {
        field.name: (
            field,
            hints[field.name],
            _option_parameter(field, hints[field.name], *GROUPS[kind.__name__]),
        )
        for field in option_fields(kind)
    }


def _is_for(kind: Any, kinds: Iterable[Any], name: str, value: Any) -> bool:
    """Return True if a class of options gets a value: where several have an option of that name,
    those with such a choice; all, if it is no choice but a number.
    """
    rivals = [each for each in kinds if name in each.__dataclass_fields__]
    if len(rivals) < 2:
        return True
    described = {
        each: each.__dataclass_fields__[name].metadata["option"].choices for each in rivals
    }
    if value in described[kind] or not any(described.values()):
        return True
    if not any(value in choices for choices in described.values()):
        every = dict.fromkeys(choice for choices in described.values() for choice in choices)
        raise CutraceError(f"--{dashed(name)} {value}: expected one of {', '.join(every)}")
    return False


def _merge(
    one: tuple[Field[Any], Any, Parameter], other: tuple[Field[Any], Any, Parameter]
) -> tuple[Field[Any], Any, Parameter]:
    """Return an option that two classes have: its choices and explanations are those of both."""
    field, kind, _ = other
    first, second = (each[0].metadata["option"] for each in (one, other))
    choices = dict.fromkeys(f"{first.metavar}|{second.metavar}".split("|"))
    both = replace(second, help=f"{first.help} {second.help}", metavar="|".join(choices))
    panel = one[2].annotation.__metadata__[0].rich_help_panel
    info = value(both.help, both.metavar, f"--{dashed(field.name)}", rich_help_panel=panel)
    typed_kind: Any = kind | None
    annotation = Annotated[typed_kind, info]
    return field, kind, other[2].replace(annotation=annotation)


def _option_parameter(
    field: Field[Any], kind: Any, panel: str, complete: Mapping[str, Complete]
) -> Parameter:
    """Return typer's parameter for a field of options; an absent option is None."""
    option: Option = field.metadata["option"]
    names = option.names
    if kind is bool:
        names = names or (f"--{'no-' * (field.default is True)}{dashed(field.name)}",)
    names = names or (f"--{dashed(field.name)}",)
    many = item_type(kind)
    typed_kind: Any = list[many] | None if many else kind if kind is bool else kind | None  # type: ignore[valid-type]
    info = value(
        option.help,
        option.metavar,
        *names,
        complete=complete.get(field.name),
        rich_help_panel=option.panel or panel,
    )
    default = False if kind is bool else None
    annotation = Annotated[typed_kind, info]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read_field(field: Field[Any], kind: Any, value: Any) -> Any:
    """Convert a typed value to the field's type."""
    option: Option = field.metadata["option"]
    if kind is bool:
        return value if field.default is False else not value
    if get_origin(kind) is Mapping:
        return dict(_pair(dashed(field.name), text, option.metavar or "") for text in value)
    if option.commas:
        return tuple(word for text in value for word in text.split(",") if word)
    return tuple(value) if item_type(kind) else value


def _pair(option: str, text: str, expected: str) -> tuple[str, str]:
    """Parse `stage.key=value` into a pair."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise CutraceError(f"--{option} {text}: expected {expected}")
    return key, value

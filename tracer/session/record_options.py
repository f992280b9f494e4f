"""Options of a session: its own arguments, else those of `cutrace record`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, TypeAlias, TypedDict

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...base.options import option
from ..simt.kernel.run_options import RunOptions

Words: TypeAlias = str | int | Iterable[str | int]
"""Names or numbers: one, several separated by commas, or a list."""

_PANEL = "What is recorded"
PTX = "ptx"
CODES = (PTX, "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""What may run: PTX, or the machine code of an architecture."""


def code_option() -> Any:
    """Return the option that says which code runs."""
    return option(
        PTX,
        "Run the kernels' PTX (`ptx`, the default) or their machine code for a capability, 7.5 to "
        "12.0: instructions are then counted as the assembler made them.",
        "ptx|sm_NN",
        panel=_PANEL,
        choices=CODES,
    )


def check_code(code: str) -> None:
    """Raise CutraceError for a code that does not exist."""
    if code not in CODES:
        raise CutraceError(f"there is no code `{code}`, expected one of {', '.join(CODES)}")


@dataclass(frozen=True, slots=True)
class RecordOptions(RunOptions):
    """Options for running and recording launches (`filter.py` parses the latter)."""

    only_kernels: str | None = option(
        None, "Record launches of these kernels alone.", "NAME,...", panel=_PANEL
    )
    only_launches: str | None = option(
        None, "Record these launches, counted from 0.", "N|N-M,...", panel=_PANEL
    )
    only_blocks: str | None = option(
        None, "Record these blocks of each grid.", "N|N-M,...", panel=_PANEL
    )
    only_warps: str | None = option(
        None, "Record these warps of each block.", "N|N-M,...", panel=_PANEL
    )
    only_lines: str | None = option(
        None, "Record the accesses of these lines.", "[FILE:]LINE,...", panel=_PANEL
    )
    only_spaces: str | None = option(
        None, "Record the accesses to these state spaces.", "global|shared|...", panel=_PANEL
    )
    code: str = code_option()
    control: bool = option(True, "Leave out which instructions the warps ran.", panel=_PANEL)
    sample_blocks: str | None = option(
        None,
        "Draw so many blocks and run only those; counters are scaled up, with intervals.",
        "N|F%",
        panel=_PANEL,
    )
    within: str | None = option(
        None,
        "Draw as many blocks of each launch as run within S seconds, estimated from a few.",
        "S",
        panel=_PANEL,
    )
    sample_seed: int = option(0, "Seed of the draw (default: 0).", "S", panel=_PANEL)
    max_trace_size: str | None = option(
        None, "The largest trace: 500K, 10M, 2G.", "BYTES", panel=_PANEL
    )
    final_values: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    """Filled with the values of each device array at the end of a session, by name."""
    inputs: dict[str, list[str]] | None = field(default=None, repr=False, compare=False)
    """Filled with the number of elements and a hash of each fill by a launch line, by array."""

    def __post_init__(self) -> None:
        RunOptions.__post_init__(self)
        check_code(self.code)


class SessionOptions(TypedDict, total=False):
    """The keywords of `Session`: the fields of RecordOptions, those called only_NAME in `only`.

    None means the default.
    """

    max_instructions: int | None
    check_uninitialized: bool | None
    max_threads: int | None
    engine: str | None
    bounds: str | None
    only: Mapping[str, Words] | None
    control: bool | None
    sample_blocks: int | str | None
    within: float | str | None
    sample_seed: int | None
    code: str | None
    max_trace_size: int | str | None
    jobs: int | None


_DEFAULT = ContextVar("cutrace_options", default=RecordOptions())  # noqa: B039 (frozen)


@contextmanager
def default_options(options: RecordOptions) -> Iterator[None]:
    """Set the default options of sessions that open inside the `with` body."""
    token = _DEFAULT.set(options)
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def choose_options(only: Mapping[str, Words] | None = None, **options: Any) -> RecordOptions:
    """Return the options of a session: those in `options` that are not None, else the defaults.

    `only` has the fields called only_NAME by NAME. Raises CutraceError for an invalid name or
    value.
    """
    fields = RecordOptions.__dataclass_fields__
    keys = [name.removeprefix("only_") for name in fields if name.startswith("only_")]
    for name, words in (only or {}).items():
        if name not in keys:
            expected = ", ".join(keys)
            raise CutraceError(f"only {name}{nearest(name, keys)}: expected one of {expected}")
        options[f"only_{name}"] = _text(words)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given.keys() & fields.keys():
        if fields[name].type == str | None:  # a number is text, as on the command line
            given[name] = str(given[name])
    return replace(_DEFAULT.get(), **given)


def _text(words: Words) -> str:
    """Return names or numbers in the command line's form, separated by commas."""
    return str(words) if isinstance(words, str | int) else ",".join(map(str, words))

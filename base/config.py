"""Read users' TOML files strictly: no missing keys, no unknown keys, a location in each message.

Device files, budgets, sweeps and vocabularies are read by this module. `make` builds an object from
a table: the constructor's parameters are the valid keys, and its annotations are their types.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from .cache import Cache, key_of
from .dataclass import dataclass
from .errors import CutraceError, nearest

Result = TypeVar("Result")


def read_toml(text: str | bytes, where: str) -> dict[str, Any]:
    """Parse TOML, bytes as UTF-8; raise `CutraceError` with `where` if it is invalid.

    The result is cached as JSON: parsing the counter lists takes Python forty milliseconds.
    """

    def read() -> dict[str, Any]:
        try:
            return tomllib.loads(text if isinstance(text, str) else text.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise CutraceError(f"{where}: not TOML: {error}") from error

    return _PARSED.get(key_of(text), read)


def _as_json(document: dict[str, Any]) -> bytes | None:
    try:
        return json.dumps(document).encode()
    except TypeError:  # JSON has no dates
        return None


_PARSED: Cache[dict[str, Any]] = Cache("toml", 1 << 23, _as_json, json.loads)


def check_keys(table: Iterable[str], valid_keys: Iterable[str], where: str) -> None:
    """Raise `CutraceError` for an unknown key, with the nearest valid ones."""
    every = tuple(valid_keys)
    for key in table:
        if key not in every:
            raise CutraceError(f"{where}: unknown key `{key}`{nearest(key, every)}")


@dataclass(slots=True)
class Where:
    """The location of a table, for error messages.

    `table` is its name in messages, `begun` the file that it begins in, `ended` the last file that
    changes it. `files` maps each key to its file.
    """

    table: str
    begun: str
    ended: str
    files: dict[str, str] = field(default_factory=dict)

    def of(self, key: str) -> str:
        """Return the location of a key: `mine.toml: [limits]`; for an absent key, the table's
        begin.
        """
        return self._text(self.files.get(key, self.begun))

    def last(self) -> str:
        """Return the location of the last change, for errors about a combination of keys."""
        return self._text(self.ended)

    def _text(self, file: str) -> str:
        return f"{file}: {self.table}" if self.table else file


def make(build: Callable[..., Result], table: Mapping[str, object], where: Where) -> Result:
    """Return `build(**table)`, lists as tuples.

    Raises `CutraceError` with the file and the table for an unknown key (naming the three nearest),
    a missing one, a value of another type, and values that the constructor refuses.
    """
    parameters, hints = _read_signature(build)
    for name in table:
        check_keys((name,), parameters, where.of(name))
    for name, parameter in parameters.items():
        if name not in table and parameter.default is parameter.empty:
            raise CutraceError(f"{where.of(name)}: the key `{name}` is missing")
    for name, value in table.items():
        if name in hints and not _fits(value, hints[name]):
            message = f"{name} = {value!r}; expected {_words(hints[name])}"
            raise CutraceError(f"{where.of(name)}: {message}")
    try:
        return build(**{k: tuple(v) if isinstance(v, list) else v for k, v in table.items()})
    except CutraceError as error:
        raise CutraceError(f"{where.last()}: {error}") from error


@cache
def _read_signature(
    build: Callable[..., Any],
) -> tuple[Mapping[str, inspect.Parameter], Mapping[str, object]]:
    """Return a constructor's parameters and annotations."""
    hints = get_type_hints(getattr(build, "__init__", build))
    return inspect.signature(build).parameters, hints


def _fits(value: object, hint: object) -> bool:
    """Return whether a TOML value matches an annotation, as far as TOML has types."""
    origin = get_origin(hint)
    if origin is UnionType:  # `int | None`: TOML has no None, so a value is of the other type
        return any(_fits(value, inner) for inner in get_args(hint))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        inner = get_args(hint)
        sized = Ellipsis in inner or len(inner) == 1 or not inner
        return isinstance(value, list) and (
            all(_fits(v, inner[0]) for v in value)
            if sized
            else len(value) == len(inner) and all(map(_fits, value, inner))
        )
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _words(hint: object) -> str:
    """Return the name of a type for messages."""
    if get_origin(hint) is UnionType:
        return " or ".join(_words(inner) for inner in get_args(hint) if inner is not NoneType)
    if get_origin(hint) is not None:
        return f"a list such as {str(hint).rsplit('.', 1)[-1]}"
    return _WORDS.get(hint, str(hint))


_WORDS: Mapping[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
}


_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) ?([KMGT]?)((?:i?B)?)", re.IGNORECASE)


def read_size(value: object) -> object:
    """Convert a size with a unit to bytes; return any other value unchanged.

    >>> read_size("1.5M"), read_size("64 KiB"), read_size("sector"), read_size("9.0"), read_size(7)
    (1572864, 65536, 'sector', '9.0', 7)
    """
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or not match[2] + match[3]:
        return value
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number of at most 40 digits; Python parses at most 4300.

    >>> is_whole("10"), is_whole("-1"), is_whole("9" * 5000)
    (True, False, False)
    """
    return text.isdecimal() and len(text) <= 40


def bytes_of(value: int | str, what: str, least: int = 1) -> int:
    """Convert a user's number or size to bytes; raise `CutraceError` for anything else.

    >>> bytes_of("64k", "size"), bytes_of(" 10", "size"), bytes_of(10, "size")
    (65536, 10, 10)
    """
    size = read_size(value.strip()) if isinstance(value, str) else value
    if isinstance(size, str) and is_whole(size):
        size = int(size)
    if not isinstance(size, int) or size < least:
        raise CutraceError(f"{what} is {value!r}: expected bytes, as in 64K, 10M, 2G")
    return size


def pattern_of(text: str, option: str) -> re.Pattern[str]:
    """Compile a user's regular expression; raise `CutraceError` with `option` if it is invalid."""
    try:
        return re.compile(text)
    except re.error as problem:
        raise CutraceError(
            f"{option} {text}: not a regular expression: {problem}; expected one that is found"
            f" in the names of kernels, as in {option} 'gemm|^scan'"
        ) from None

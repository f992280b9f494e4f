"""Encode and strictly decode the manifest as JSON: the dataclasses of `schema.py` are its grammar.

A field becomes a key of the same name, a tuple a list, a Space its name in lower case. Values equal
to the default are left out, and in a launch those equal to the launch that it is `like`. JSON has
no infinities: a non-finite float argument becomes the text `inf`, `-inf` or `nan`.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from numbers import Integral, Real
from reprlib import Repr
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from ..base.errors import CutraceError, nearest
from .schema import FORMAT_VERSION, Launch, Manifest, Space


def to_json(manifest: Manifest) -> str:
    """Return the manifest as JSON text: ASCII, a fixed order of keys, the sources sorted by name.

    Each launch, event and source has a line.
    """
    value = encode(replace(manifest, launches=()), Manifest, "manifest")
    value["launches"] = list(_launches(manifest.launches))
    keys = (f" {_dump(key)}: {_spread(item)}" for key, item in value.items())
    return "{\n" + ",\n".join(keys) + "\n}\n"


def _launches(launches: Sequence[Launch]) -> Iterator[dict[str, Any]]:
    """Encode launches, each `like` the previous one of the same kernel."""
    last: dict[str, int] = {}
    for number, launch in enumerate(launches):
        before, where = last.get(launch.kernel), f"manifest.launches[{number}]"
        last[launch.kernel] = number
        if before is None:
            yield encode(launch, Launch, where)
        else:
            yield {LIKE: before, **_difference(launch, launches[before], where)}


def _difference(launch: Launch, other: Launch, where: str) -> dict[str, Any]:
    """Encode the fields of a launch that differ from another."""
    difference = {}
    for name, hint in hints(Launch).items():
        item, same = getattr(launch, name), getattr(other, name)
        if item is not same and item != same:
            difference[name] = encode(item, hint, f"{where}.{name}")
    return difference


def _spread(value: Any) -> str:
    """Return a list or an object with a line for each item."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_dump, value)) + "\n ]"
    if isinstance(value, dict) and value:
        items = (f"{_dump(key)}: {_dump(item)}" for key, item in value.items())
        return "{\n  " + ",\n  ".join(items) + "\n }"
    return _dump(value)


_NONE = object()
"""A sentinel that equals no value."""

_dump = json.JSONEncoder(allow_nan=False).encode


class Unread:
    """A manifest of which only the JSON is parsed, not decoded, so that its declared sizes can be
    checked against the trace first.

    Raises CutraceError, naming `where` and the key, for invalid JSON, another version, an unknown
    or missing key (only keys with a default may be missing) and a value of a wrong type.
    """

    def __init__(self, text: str | bytes, where: str) -> None:
        self._where = where
        if problem := excess(text if isinstance(text, bytes) else text.encode()):
            raise CutraceError(f"{where}: {problem}")
        try:
            self._value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            problem = str(error)[:200]
            raise CutraceError(f"{where}: not JSON: {problem}; is the trace whole?") from error
        _check_version(self._value, where)

    @property
    def launches(self) -> int:
        """Return the number of launches that it declares."""
        launches = self._value.get("launches")
        return len(launches) if isinstance(launches, list) else 0

    def manifest(self) -> Manifest:
        """Decode it into the dataclasses of `schema.py`."""
        try:
            return decoder(Manifest)(self._value)  # type: ignore[no-any-return]
        except WrongValue as wrong:
            raise CutraceError(wrong.message(self._where)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_version(value: object, where: str) -> None:
    version = value.get("format_version") if isinstance(value, dict) else None
    if type(version) is not int or version < 1:
        raise CutraceError(f"{where}: no `format_version`: this is not a manifest of a trace")
    if version > FORMAT_VERSION:
        raise CutraceError(
            f"{where}: trace format {shown(version)}, but this cutrace reads up to"
            f" {FORMAT_VERSION}: update cutrace, or record the trace again"
        )


def encode(value: Any, kind: Any, where: str) -> Any:
    """Return `value` as a JSON value; CutraceError unless a reader can decode it as a `kind`."""
    encoded = _encode(value)
    try:
        decoder(kind)(encoded)
    except WrongValue as wrong:
        raise CutraceError(wrong.message(where)) from None
    return encoded


def _encode(value: Any) -> Any:
    """Return a value as JSON has it, NumPy scalars as Python's own, non-finite floats as text."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is tuple:
        return list(value) if {*map(type, value)} <= PLAIN else [*map(_encode, value)]
    if kind is Space:
        return value.name.lower()
    if is_dataclass(kind):
        encoded = {}
        for name, default in _usual(kind):
            item = getattr(value, name)
            if item is not default and not (type(item) is type(default) and item == default):
                encoded[name] = item if type(item) in PLAIN else _encode(item)
        return encoded
    if isinstance(value, Mapping):
        return {key: _encode(value[key]) for key in sorted(value)}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


@cache
def _usual(kind: type) -> Sequence[tuple[str, Any]]:
    """Return the fields of a dataclass, and the value with which each is left out."""
    usual = {} if kind is Manifest else defaults(kind)
    return [(field.name, usual.get(field.name, _NONE)) for field in fields(kind)]


NAMES = {
    int: "an integer",
    str: "a text",
    bool: "true or false",
    float: "a number",
    list: "a list",
    dict: "a table of keys",
}
PLAIN = frozenset({int, str, bool})
"""Types that JSON stores unchanged."""

LIKE = "like"
"""Key of a launch with the index of the launch that supplies its missing keys."""


_Decoder: TypeAlias = Callable[[Any], Any]
"""Decodes a JSON value; raises WrongValue."""


class WrongValue(Exception):
    """An invalid value; `place` is its path of keys, innermost first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.place: list[str | int] = []

    def inside(self, key: str | int) -> "WrongValue":
        """Return this error with `key` appended to its path."""
        self.place.append(key)
        return self

    def message(self, where: str) -> str:
        """Return the sentence, with the place in a file."""
        keys = (f"[{k}]" if isinstance(k, int) else f".{k}" for k in self.place[::-1])
        place = "".join(keys).removeprefix(".").replace(".[", "[")
        return ": ".join(each for each in (where, place, str(self)) if each)


@cache
def decoder(kind: Any) -> _Decoder:
    """Return the decoder for values of an annotated type."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _record_decoder(kind)
    if kind == tuple[Launch, ...]:
        return _decode_launches
    if get_origin(kind) is tuple:
        return _tuple_decoder(kind)
    if get_origin(kind) is dict:
        return _decode_texts
    if kind is Space:
        return _decode_space
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return _decode_int if kind is int else lambda value: _require(value, kinds)


def _decode_int(value: Any) -> Any:
    """Decode an integer: a fast path of `_require` for the most frequent type."""
    return value if type(value) is int and 0 <= value <= _MOST else _require(value, (int,))


def _decode_launches(value: Any) -> Any:
    """Decode launches; values that a launch inherits by `like` are shared objects."""
    launches: list[Launch] = []
    for number, item in enumerate(_require(value, (list,))):
        try:
            launches.append(_decode_launch(item, launches))
        except WrongValue as wrong:
            raise wrong.inside(number) from None
    return tuple(launches)


def _decode_launch(value: Any, before: list[Launch]) -> Launch:
    items = dict(_require(value, (dict,)))
    if LIKE not in items:
        launch: Launch = decoder(Launch)(items)
        return launch
    like = items.pop(LIKE)
    if type(like) is not int or not 0 <= like < len(before):
        raise WrongValue(f"{shown(like)}, expected a launch before this one").inside(LIKE)
    return replace(before[like], **_decode_items(Launch, items))


def _decode_items(kind: type, items: Mapping[str, Any]) -> dict[str, Any]:
    """Decode the keys of a record that are present."""
    decoders = _decoders(kind)
    values = {}
    for key, item in items.items():
        if key not in decoders:
            raise _unknown(key, decoders)
        try:
            values[key] = decoders[key](item)
        except WrongValue as wrong:
            raise wrong.inside(key) from None
    return values


@cache
def _decoders(kind: type) -> Mapping[str, _Decoder]:
    return {name: decoder(hint) for name, hint in hints(kind).items()}


def _record_decoder(kind: type) -> _Decoder:
    decoders = _decoders(kind)
    required = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]

    def decode_record(value: Any) -> Any:
        items = _require(value, (dict,))
        for name in required:
            if name not in items:
                raise _missing(items, decoders, name)
        return kind(**_decode_items(kind, items))

    return decode_record


def _missing(items: Mapping[str, Any], decoders: Mapping[str, Any], name: str) -> WrongValue:
    """Return the error for a missing key, suggesting a misspelt one."""
    strange = next((key for key in items if key not in decoders), None)
    if strange is not None:
        return _unknown(strange, decoders)
    return WrongValue(f"the key `{name}` is missing")


def _unknown(key: str, decoders: Mapping[str, Any]) -> WrongValue:
    short = key[:_SHOWN]
    return WrongValue(f"unknown key `{short}`{nearest(short, decoders)}")


def _tuple_decoder(kind: Any) -> _Decoder:
    first, *others = get_args(kind)
    repeats = others == [Ellipsis]
    decoders = [decoder(each) for each in ([first] if repeats else [first, *others])]
    plain = frozenset({first}) & PLAIN

    def decode_tuple(value: Any) -> Any:
        items = _require(value, (list,))
        if repeats and {*map(type, items)} <= plain and _are_small(first, items):
            return tuple(items)
        if not repeats and len(items) != len(decoders):
            raise WrongValue(f"{len(items)} values, expected {len(decoders)}")
        values = []
        for number, item in enumerate(items):
            try:
                values.append(decoders[0 if repeats else number](item))
            except WrongValue as wrong:
                raise wrong.inside(number) from None
        return tuple(values)

    return decode_tuple


def _are_small(kind: type, items: list[Any]) -> bool:
    """Return whether integers fit 64 bits, and texts are not too long."""
    if not items or kind is bool:
        return True
    if kind is int:
        return bool(min(items) >= _LEAST and max(items) <= _MOST)
    longest: int = max(map(len, items))
    return longest <= LONGEST


def _decode_texts(value: Any) -> dict[str, str]:
    items: dict[str, str] = _require(value, (dict,))
    for key, item in items.items():
        _require(key, (str,))
        if type(item) is not str:
            short = repr(key[:_SHOWN])
            raise WrongValue(f"expected a text, found {shown(item)}").inside(f"[{short}]")
    return items


_SPACES = {space.name.lower(): space for space in Space}


def _decode_space(value: Any) -> Space:
    name = _require(value, (str,))
    if name not in _SPACES:
        spaces = ", ".join(_SPACES)
        raise WrongValue(f"`{name[:_SHOWN]}` is not a space; there are {spaces}")
    return _SPACES[name]


def _require(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return a value of one of these types; integers must fit 64 bits, and names have a maximum
    length.
    """
    kind = type(value)
    if kind not in kinds:
        expected = " or ".join(NAMES.get(k, f"a {k.__name__}") for k in kinds)
        raise WrongValue(f"expected {expected}, found {shown(value)}")
    if kind is int and not _LEAST <= value <= _MOST:
        raise WrongValue(f"{shown(value)} has more than 64 bits")
    if kind is str and len(value) > LONGEST:
        raise WrongValue(f"{shown(value)} has {len(value)} characters; {LONGEST} at most")
    return value


_LEAST, _MOST = -(1 << 63), (1 << 64) - 1

LONGEST = 1 << 17
"""Maximum characters of a text, except source texts: a structure of 64 KiB in hexadecimal."""

_SHOWN = 60
"""Maximum characters of a value or key in a message."""

_REPR = Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 2, _SHOWN, _SHOWN, _SHOWN


def shown(value: Any) -> str:
    """Return a value as a message shows it, shortened if necessary."""
    return _REPR.repr(value)[:_SHOWN]


@cache
def defaults(kind: type) -> dict[str, Any]:
    """Return the fields of a dataclass that have a default, with the default."""
    values = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    factories = {
        f.name: f.default_factory for f in fields(kind) if f.default_factory is not MISSING
    }
    return values | {name: make() for name, make in factories.items()}


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return the annotated types of a dataclass' fields, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


ALWAYS = 10_000
"""Number of values of each kind that is always accepted."""

LEAST_BYTES = {b"{": 24, b"[": 12, b":": 8}
"""Minimum average bytes of text per object, list and key of any valid manifest: the shortest list
is a pair of numbers, the shortest object and key are a copy's. A short text of many small values
would otherwise occupy a lot of memory."""

_KINDS = {b"{": "objects", b"[": "lists", b":": "keys"}
_CHUNK = 1 << 20
_QUOTE = ord('"')


def excess(text: bytes) -> str:
    """Return which kind of value is too frequent in the text, or an empty text."""
    most = {mark: max(ALWAYS, len(text) // least) for mark, least in LEAST_BYTES.items()}
    if all(text.count(mark) <= limit for mark, limit in most.items()):
        return ""
    for mark, count in _count_outside_texts(text).items():  # sources contain many brackets
        if count > most[mark]:
            return f"{count} {_KINDS[mark]} in {len(text)} bytes, more than any manifest has"
    return ""


def _count_outside_texts(text: bytes) -> dict[bytes, int]:
    """Count each mark outside quoted texts."""
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    counts = dict.fromkeys(LEAST_BYTES, 0)
    is_inside = np.uint8(0)
    for start in range(0, len(plain), _CHUNK):
        piece = np.frombuffer(plain[start : start + _CHUNK], np.uint8)
        quotes = np.cumsum(piece == _QUOTE, dtype=np.uint32)
        outside = piece[(quotes & 1) == is_inside].tobytes()
        is_inside = np.uint8((int(is_inside) + int(quotes[-1])) & 1)
        for mark in counts:
            counts[mark] += outside.count(mark)
    return counts

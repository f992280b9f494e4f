"""The manifest as JSON and back, strictly: the dataclasses of `schema.py` are its grammar.

A field becomes a key of the same name, a tuple a list, a Space its name in lower case. What equals
its default is left out, and of a launch what equals the launch that it is `like`. JSON has no
infinities: a float argument that is not finite is kept as the text `inf`, `-inf` or `nan`.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin

from ...errors import CutraceError
from ..schema import FORMAT_VERSION, Launch, Manifest, Space
from .json_size import excess
from .manifest_decoder import LIKE, NAMES, PLAIN, WrongValue, decoder, defaults, hints, shown


def to_json(manifest: Manifest) -> str:
    """Return the manifest as JSON text: ASCII, one order of keys, the sources sorted by name.

    Each launch, event and source has a line.
    """
    value = encode(replace(manifest, launches=()), Manifest, "manifest")
    value["launches"] = list(_launches(manifest.launches))
    keys = (f" {_dump(key)}: {_spread(item)}" for key, item in value.items())
    return "{\n" + ",\n".join(keys) + "\n}\n"


def _launches(launches: Sequence[Launch]) -> Iterator[dict[str, Any]]:
    """Encode launches, each `like` the one before it of the same kernel."""
    last: dict[str, int] = {}
    for number, launch in enumerate(launches):
        before, where = last.get(launch.kernel), f"manifest.launches[{number}]"
        last[launch.kernel] = number
        if before is None:
            yield encode(launch, Launch, where)
        else:
            yield {LIKE: before, **_difference(launch, launches[before], where)}


def _difference(launch: Launch, other: Launch, where: str) -> dict[str, Any]:
    """Encode what a launch has otherwise than another."""
    found = {}
    for name, hint in hints(Launch).items():
        item, same = getattr(launch, name), getattr(other, name)
        if item is not same and item != same:
            found[name] = encode(item, hint, f"{where}.{name}")
    return found


def _spread(value: Any) -> str:
    """Return a list or an object with a line for each item."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_dump, value)) + "\n ]"
    if isinstance(value, dict) and value:
        items = (f"{_dump(key)}: {_dump(item)}" for key, item in value.items())
        return "{\n  " + ",\n  ".join(items) + "\n }"
    return _dump(value)


_NONE = object()
"""Equal to no value."""

_dump = json.JSONEncoder(allow_nan=False).encode


class Unread:
    """A manifest of which only the JSON was looked at, so that what it would have us make can be
    compared with what there is.

    Raises CutraceError, naming `where` and the key, for what is not JSON, another version, an
    unknown or missing key (only keys with a default may be missing) and a value of a wrong type.
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
        """How many launches it names, if they are right otherwise."""
        launches = self._value.get("launches")
        return len(launches) if isinstance(launches, list) else 0

    def manifest(self) -> Manifest:
        """Return it as our own values."""
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
    """Return `value`, which must be of the annotated type `kind`, as JSON knows it."""
    return _encoder(kind)(value, where)


_Encoder: TypeAlias = Callable[[Any, str], Any]
"""Takes a value, and its place for messages."""


@cache
def _encoder(kind: Any) -> _Encoder:
    """Return what encodes values of an annotated type."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _record_encoder(kind)
    if get_origin(kind) is tuple:
        return _tuple_encoder(kind)
    if get_origin(kind) is dict:
        return _encode_texts
    if kind is Space:
        return _encode_space
    return lambda value, where: _checked(_plain(value), kind, where)


def _record_encoder(kind: type) -> _Encoder:
    usual = {} if kind is Manifest else defaults(kind)
    keys = [
        (name, hint, hint in PLAIN, _encoder(hint), usual.get(name, _NONE))
        for name, hint in hints(kind).items()
    ]

    def encode_record(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, kind):
            _checked(value, kind, where)
        encoded = {}
        for name, hint, is_plain, inner, default in keys:
            item = getattr(value, name)
            if item is default or (type(item) is type(default) and item == default):
                continue
            as_it_is = is_plain and type(item) is hint
            encoded[name] = item if as_it_is else inner(item, f"{where}.{name}")
        return encoded

    return encode_record


def _tuple_encoder(kind: Any) -> _Encoder:
    inner = [_encoder(each) for each in get_args(kind) if each is not Ellipsis]
    repeated, plain = Ellipsis in get_args(kind), {get_args(kind)[0]} & PLAIN

    def encode_tuple(value: Any, where: str) -> list[Any]:
        if not isinstance(value, tuple):
            _checked(value, list, where)
        if repeated and {*map(type, value)} <= plain:
            return list(value)
        encoders = inner * len(value) if repeated else inner
        _check_length(len(value), len(encoders), where)
        return [encoders[i](item, f"{where}[{i}]") for i, item in enumerate(value)]

    return encode_tuple


def _encode_texts(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _checked(value, dict, where)
    return {key: encode(value[key], str, f"{where}[{key!r}]") for key in sorted(value)}


def _encode_space(value: Any, where: str) -> str:
    if not isinstance(value, Space):
        _checked(value, Space, where)
    return str(value.name.lower())


def _plain(value: Any) -> Any:
    """Return NumPy scalars as Python's own, and a float that JSON lacks as text."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def _check_length(found: int, expected: int, where: str) -> None:
    if found != expected:
        raise CutraceError(f"{where}: {found} values, expected {expected}")


def _checked(value: Any, kind: Any, where: str) -> Any:
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if type(value) in kinds:
        return value
    expected = " or ".join(NAMES.get(k, f"a {k.__name__}") for k in kinds)
    raise CutraceError(f"{where}: expected {expected}, found {shown(value)}")

"""The manifest as JSON and back, strictly: the dataclasses of `schema.py` are its grammar.

A field becomes a key of the same name, a tuple a list, a Space its name in lower case. JSON has no
infinities: a float argument that is not finite is kept as the text `inf`, `-inf` or `nan`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ..errors import CutraceError, nearest
from .schema import FORMAT_VERSION, Manifest, Space

_NAMES = {
    int: "an integer",
    str: "a text",
    bool: "true or false",
    float: "a number",
    list: "a list",
    dict: "a table of keys",
}
_PLAIN = frozenset({int, str, bool})
"""What JSON takes as it is."""


def to_json(manifest: Manifest) -> str:
    """Return the manifest as JSON text: ASCII, one order of keys, the sources sorted by name.

    Each launch, event and source has a line.
    """
    value = encode(manifest, Manifest, "manifest")
    keys = (f" {_dump(key)}: {_spread(item)}" for key, item in value.items())
    return "{\n" + ",\n".join(keys) + "\n}\n"


def _spread(value: Any) -> str:
    """Return a list or an object with a line for each item."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_dump, value)) + "\n ]"
    if isinstance(value, dict) and value:
        items = (f"{_dump(key)}: {_dump(item)}" for key, item in value.items())
        return "{\n  " + ",\n  ".join(items) + "\n }"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def from_json(text: str | bytes, where: str) -> Manifest:
    """Return the manifest that JSON text describes.

    Raises CutraceError, naming `where` and the key, for what is not JSON, another version, an
    unknown or missing key (only keys with a default may be missing) and a value of a wrong type.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CutraceError(f"{where}: not JSON: {error}; is the trace whole?") from error
    _check_version(value, where)
    manifest: Manifest = _decode(Manifest, value, f"{where}:")
    return manifest


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_version(value: object, where: str) -> None:
    version = value.get("format_version") if isinstance(value, dict) else None
    if type(version) is not int or version < 1:
        raise CutraceError(f"{where}: no `format_version`: this is not a manifest of a trace")
    if version > FORMAT_VERSION:
        raise CutraceError(
            f"{where}: trace format {version}, but this cutrace reads up to {FORMAT_VERSION}:"
            " update cutrace, or record the trace again"
        )


def encode(value: Any, kind: Any, where: str) -> Any:
    """Return `value`, which must be of the annotated type `kind`, as JSON knows it."""
    if kind in _PLAIN and type(value) is kind:
        return value
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, kind):
        return _encode_record(value, kind, where)
    if kind == tuple[int, ...] and isinstance(value, tuple) and {*map(type, value)} <= {int}:
        return list(value)
    if _origin(kind) is tuple and isinstance(value, tuple):
        kinds = _element_kinds(kind, len(value), where)
        return [encode(item, kinds[i], f"{where}[{i}]") for i, item in enumerate(value)]
    if _origin(kind) is dict and isinstance(value, Mapping):
        return {key: encode(value[key], str, f"{where}[{key!r}]") for key in sorted(value)}
    if kind is Space and isinstance(value, Space):
        return value.name.lower()
    return _checked(_plain(value), kind, where)


def _encode_record(value: Any, kind: type, where: str) -> dict[str, Any]:
    """Return a dataclass; the place of a field is spelled only where it is looked at closely."""
    encoded = {}
    for name, hint in _hints(kind).items():
        item = getattr(value, name)
        is_plain = type(item) is hint and hint in _PLAIN
        encoded[name] = item if is_plain else encode(item, hint, f"{where}.{name}")
    return encoded


def _plain(value: Any) -> Any:
    """Return NumPy scalars as Python's own, and a float that JSON lacks as text."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def _decode(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return _decode_record(kind, value, where)
    if get_origin(kind) is tuple:
        items = _checked(value, list, where)
        kinds = _element_kinds(kind, len(items), where)
        return tuple(_decode(kinds[i], item, f"{where}[{i}]") for i, item in enumerate(items))
    if get_origin(kind) is dict:
        items = _checked(value, dict, where)
        return {key: _checked(item, str, f"{where}[{key!r}]") for key, item in items.items()}
    if kind is Space:
        return _decode_space(value, where)
    return _checked(value, kind, where)


def _decode_record(kind: type, value: Any, where: str) -> Any:
    items = _checked(value, dict, where)
    hints = _hints(kind)
    for key in items:
        if key not in hints:
            raise CutraceError(f"{where.rstrip(':')}: unknown key `{key}`{nearest(key, hints)}")
    for field in fields(kind):
        optional = field.default is not MISSING or field.default_factory is not MISSING
        if field.name not in items and not optional:
            raise CutraceError(f"{where.rstrip(':')}: the key `{field.name}` is missing")
    stem = f"{where} " if where.endswith(":") else f"{where}."
    return kind(**{key: _decode(hints[key], v, stem + key) for key, v in items.items()})


def _decode_space(value: Any, where: str) -> Space:
    names = {space.name.lower(): space for space in Space}
    name = _checked(value, str, where)
    if name not in names:
        known = ", ".join(names)
        raise CutraceError(f"{where}: `{name}` is not a space; there are {known}")
    return names[name]


def _element_kinds(kind: Any, length: int, where: str) -> list[Any]:
    """Return the type of each element of an annotated tuple."""
    arguments = get_args(kind)
    if arguments[-1] is Ellipsis:
        return [arguments[0]] * length
    if len(arguments) != length:
        raise CutraceError(f"{where}: {length} values, expected {len(arguments)}")
    return list(arguments)


def _checked(value: Any, kind: Any, where: str) -> Any:
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if type(value) in kinds:
        return value
    expected = " or ".join(_NAMES.get(k, f"a {k.__name__}") for k in kinds)
    raise CutraceError(f"{where}: expected {expected}, found {repr(value)[:60]}")


@cache
def _origin(kind: Any) -> Any:
    return get_origin(kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}

"""Strict decoding of a manifest from JSON: the dataclasses of `schema.py` are the grammar.

The path of a value is worked out only for error messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from reprlib import Repr
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from ...errors import nearest
from ..schema import Launch, Space

NAMES = {
    int: "an integer",
    str: "a text",
    bool: "true or false",
    float: "a number",
    list: "a list",
    dict: "a table of keys",
}
PLAIN = frozenset({int, str, bool})
"""What JSON takes as it is."""

LIKE = "like"
"""The key of a launch that says which launch has the values of its missing keys."""


_Decoder: TypeAlias = Callable[[Any], Any]
"""Takes a JSON value and returns ours; raises WrongValue."""


class WrongValue(Exception):
    """A value that is not as it should be; `place` leads to it, the innermost key first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.place: list[str | int] = []

    def inside(self, key: str | int) -> "WrongValue":
        """Return this, of a value in another under `key`."""
        self.place.append(key)
        return self

    def message(self, where: str) -> str:
        """Return the sentence, with the place in a file."""
        keys = (f"[{k}]" if isinstance(k, int) else f".{k}" for k in self.place[::-1])
        place = "".join(keys).removeprefix(".").replace(".[", "[")
        return ": ".join(each for each in (where, place, str(self)) if each)


@cache
def decoder(kind: Any) -> _Decoder:
    """Return what decodes values of an annotated type."""
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
    """As _require for integers, which are the most."""
    return value if type(value) is int and 0 <= value <= _MOST else _require(value, (int,))


def _decode_launches(value: Any) -> Any:
    """A tuple of launches; what one has like another is the same object."""
    made: list[Launch] = []
    for number, item in enumerate(_require(value, (list,))):
        try:
            made.append(_decode_launch(item, made))
        except WrongValue as wrong:
            raise wrong.inside(number) from None
    return tuple(made)


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
    """Decode the keys of a record that are there."""
    decoders = _decoders(kind)
    made = {}
    for key, item in items.items():
        if key not in decoders:
            raise _unknown(key, decoders)
        try:
            made[key] = decoders[key](item)
        except WrongValue as wrong:
            raise wrong.inside(key) from None
    return made


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


def _missing(items: Mapping[str, Any], known: Mapping[str, Any], name: str) -> WrongValue:
    """A key is missing, perhaps because it is spelled otherwise."""
    strange = next((key for key in items if key not in known), None)
    if strange is not None:
        return _unknown(strange, known)
    return WrongValue(f"the key `{name}` is missing")


def _unknown(key: str, known: Mapping[str, Any]) -> WrongValue:
    short = key[:_SHOWN]
    return WrongValue(f"unknown key `{short}`{nearest(short, known)}")


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
        made = []
        for number, item in enumerate(items):
            try:
                made.append(decoders[0 if repeats else number](item))
            except WrongValue as wrong:
                raise wrong.inside(number) from None
        return tuple(made)

    return decode_tuple


def _are_small(kind: type, items: list[Any]) -> bool:
    """Whether integers have 64 bits, and texts are not too long."""
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
        known = ", ".join(_SPACES)
        raise WrongValue(f"`{name[:_SHOWN]}` is not a space; there are {known}")
    return _SPACES[name]


def _require(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return a value of one of these types; integers have 64 bits, and names an end."""
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
"""Characters of a text, source texts aside: a structure of 64 KiB in hexadecimal."""

_SHOWN = 60
"""Characters of a value, or of a key, that a message shows."""

_REPR = Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 2, _SHOWN, _SHOWN, _SHOWN


def shown(value: Any) -> str:
    """Return a value as a message shows it, however large it is."""
    return _REPR.repr(value)[:_SHOWN]


@cache
def defaults(kind: type) -> dict[str, Any]:
    """Return the defaults of a dataclass' fields, by name, of those that have one."""
    given = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    made = {f.name: f.default_factory for f in fields(kind) if f.default_factory is not MISSING}
    return given | {name: make() for name, make in made.items()}


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return the annotated types of a dataclass' fields, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}

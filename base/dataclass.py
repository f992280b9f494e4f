"""Dataclasses with methods that are generated on first call.

The standard library's decorator compiles six methods per class on import. For the classes of a
short command that is a tenth of its run time, and most are never called. The result is an ordinary
dataclass to `fields`, `replace`, pickle and type checkers. Not supported: `order`, `unsafe_hash`,
`InitVar`, and subclasses of the standard library's frozen dataclasses.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, *, frozen=False, slots=False, eq=True, repr=True):
        """Make a class a dataclass, as the standard library's decorator does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, repr=repr)
        result_class = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
        methods = {
            "__init__": _Unwritten(result_class, frozen),
            **({"__repr__": _repr} if repr else {}),
            **(_comparison(result_class, frozen) if eq else {}),
            **(_freeze(result_class) if frozen else {}),
        }
        for name, method in methods.items():
            if name not in vars(cls) or vars(cls)[name] is None:
                setattr(result_class, name, method)
        return result_class


class _Unwritten:
    """Placeholder for the `__init__` of a class until its first lookup."""

    def __init__(self, cls: type, is_frozen: bool) -> None:
        self._cls, self._is_frozen = cls, is_frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Generate the method, and replace this placeholder by it in the class."""
        # `type.__call__` looks `__init__` up in the class, so the first construction comes here.
        # The assignment replaces this descriptor: later ones call the generated function directly.
        written = _write_init(self._cls, self._is_frozen)
        self._cls.__init__ = written  # type: ignore[misc]
        return written if instance is None else MethodType(written, instance)


class _Unset:
    """Marks a field with a default factory."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _write_init(cls: type, is_frozen: bool) -> Any:
    """Compile the function that sets a class's fields to its arguments or their defaults."""
    places: dict[str, Any] = {"_unset": _UNSET, "_set": object.__setattr__}
    positionals, named = ["self"], list[str]()
    lines: list[str] = []
    for field in fields(cls):
        name = field.name
        parameter = value = name
        if field.default_factory is not MISSING:
            places[f"_of_{name}"] = field.default_factory
            parameter = f"{name}=_unset"
            value = f"_of_{name}()" + (f" if {name} is _unset else {name}" if field.init else "")
        elif field.default is not MISSING:
            places[f"_of_{name}"] = field.default
            parameter = f"{name}=_of_{name}"
            value = name if field.init else f"_of_{name}"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else positionals).append(parameter)
        lines.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positionals, *(["*"] if named else []), *named])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), places)
    init = places["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {f.name: f.type for f in fields(cls) if f.init} | {"return": None}
    return init


@recursive_repr()
def _repr(self: Any) -> str:
    cls: Any = type(self)
    shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in _shown(cls)])
    return f"{cls.__qualname__}({shown})"


@cache
def _shown(cls: Any) -> list[str]:
    return [field.name for field in fields(cls) if field.repr]


def _comparison(cls: type, is_frozen: bool) -> dict[str, Any]:
    """Return `__eq__`, field by field, and for a frozen class `__hash__`."""
    compared = [f.name for f in fields(cls) if f.compare]
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda value: ()

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(self) is type(other) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hashed if is_frozen else None}


def _freeze(cls: Any) -> dict[str, Any]:
    """Return the methods that block assignment and deletion, and those for pickle."""
    names = [field.name for field in fields(cls)]

    def refuse_to_set(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_to_delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    frozen = {"__setattr__": refuse_to_set, "__delattr__": refuse_to_delete}
    pickled = {"__getstate__": state, "__setstate__": restore} if "__slots__" in vars(cls) else {}
    return {**frozen, **pickled}

"""A cache of generated LLVM assembly between runs, which saves translating a function twice.

The cache key of a text hashes its sources: the modules of the functions, the modules of this
package that define the functions and classes they name, and so on recursively; the values of
constants in these; the sources of the translator; and Python's version. A look-up therefore parses
no function.
"""

import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from numbers import Number
from pathlib import Path
from types import FunctionType, ModuleType

from ..base.cache import Cache, key_of

_TEXTS: Cache[str] = Cache("loops", 1 << 26, str.encode, bytes.decode)
"""The texts: to translate those of one question takes a twelfth of a second."""


def cached_text(
    functions: Iterable[Callable[..., object]], *more: str, make: Callable[[], str]
) -> str:
    """Load the text made from functions, or make it; `more` are further inputs of the cache key."""
    parts = [(function.__module__, function.__qualname__) for function in functions]
    sources = [source_of(module) for module in sorted({module for module, _ in parts})]
    return _TEXTS.get(key_of(sys.version, _translator(), *sources, repr(parts), *more), make)


@cache
def _translator() -> bytes:
    """Return the sources of the translator."""
    return b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("*.py")))


_FOLDER = Path(__file__).parent


@cache
def source_of(name: str) -> bytes:
    """Return the source of a module and of the modules that define its functions and classes, with
    the values of their constants."""
    reached: dict[str, bytes] = {}
    waiting = {name}
    while waiting:
        module = waiting.pop()
        reached[module], named = _read(module)
        waiting |= named - reached.keys()
    return b"".join(reached[each] for each in sorted(reached))


@cache
def _read(name: str) -> tuple[bytes, set[str]]:
    """Return the source of a module with its constants, and the modules of the names in it."""
    module = import_module(name)
    assert module.__file__ is not None
    text = Path(module.__file__).read_bytes() + constants_of(module)
    named = [each for each in vars(module).values() if isinstance(each, (FunctionType, type))]
    return text, {each.__module__ for each in named if each.__module__.startswith(_PACKAGE)}


_PACKAGE = f"{__name__.partition('.')[0]}."


def constants_of(module: ModuleType) -> bytes:
    """Return the values of a module's number and string constants, its own and imported ones."""
    constants = {
        n: v for n, v in vars(module).items() if _is_constant(v) and not n.startswith("__")
    }
    return repr(sorted(constants.items())).encode()


def _is_constant(value: object) -> bool:
    return isinstance(value, (Number, str)) or (
        isinstance(value, tuple) and all(map(_is_constant, value))
    )

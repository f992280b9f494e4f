"""What functions are in LLVM assembly, kept between runs: nothing is translated twice.

A text is found by the sources that it was made of: those of the module of each function, and of the
modules of this package whose functions and classes it names, and of theirs; the values of constants
in these; what translates; and Python's version. So no function is parsed to find it.
"""

import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from numbers import Number
from pathlib import Path
from types import FunctionType, ModuleType

from ..base.cache import keep, key_of, load

TEXTS, MOST_BYTES = "loops", 1 << 26
"""What texts are kept as, and how many bytes of them: to translate those of one question takes a
twelfth of a second."""


def cached_text(
    functions: Iterable[Callable[..., object]], *more: str, make: Callable[[], str]
) -> str:
    """Load what was made of functions, or make it; `more` is what it depends on beside them."""
    parts = [(function.__module__, function.__qualname__) for function in functions]
    sources = [source_of(module) for module in sorted({module for module, _ in parts})]
    key = key_of(sys.version, _translator(), *sources, repr(parts), *more)
    if (data := load(TEXTS, key)) is not None:
        return data.decode()
    text = make()
    keep(TEXTS, key, text.encode(), MOST_BYTES)
    return text


@cache
def _translator() -> bytes:
    """Return the source of what translates."""
    return b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("*.py")))


_FOLDER = Path(__file__).parent


@cache
def source_of(name: str) -> bytes:
    """Return the source of a module and of those that its functions and classes come from, with the
    values of their constants."""
    reached: dict[str, bytes] = {}
    waiting = {name}
    while waiting:
        module = waiting.pop()
        reached[module], named = _read(module)
        waiting |= named - reached.keys()
    return b"".join(reached[each] for each in sorted(reached))


@cache
def _read(name: str) -> tuple[bytes, set[str]]:
    """Return the source of a module with its constants, and the modules of what it names."""
    module = import_module(name)
    assert module.__file__ is not None
    text = Path(module.__file__).read_bytes() + constants_of(module)
    named = [each for each in vars(module).values() if isinstance(each, (FunctionType, type))]
    return text, {each.__module__ for each in named if each.__module__.startswith(_PACKAGE)}


_PACKAGE = f"{__name__.partition('.')[0]}."


def constants_of(module: ModuleType) -> bytes:
    """Return what a module's names of numbers and texts stand for, its own and imported ones."""
    constants = {
        n: v for n, v in vars(module).items() if _is_constant(v) and not n.startswith("__")
    }
    return repr(sorted(constants.items())).encode()


def _is_constant(value: object) -> bool:
    return isinstance(value, (Number, str)) or (
        isinstance(value, tuple) and all(map(_is_constant, value))
    )

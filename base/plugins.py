"""Extensions: objects of installed packages, found by entry points in cutrace's groups.

| group | an object is |
|---|---|
| `cutrace.models` | the class of a model (`models/replay/interface/model.py`) |
| `cutrace.devices` | the path of a device's file |
| `cutrace.counters` | the path of a file of counters (`analyzer/counting/vocabulary.py`) |
| `cutrace.rules` | a function from an `Evidence` to findings (`analyzer/evidence/evidence.py`) |
| `cutrace.reports` | a function from a `Profile` to text: a format of `analyze` |
| `cutrace.importers`, `cutrace.exporters` | a module that reads or writes another tool's traces |

An extension that fails to import, or raises, is named in the error; the others still work.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from .errors import CutraceError

MODELS, DEVICES, COUNTERS = "cutrace.models", "cutrace.devices", "cutrace.counters"
RULES, REPORTS = "cutrace.rules", "cutrace.reports"
IMPORTERS, EXPORTERS = "cutrace.importers", "cutrace.exporters"


def extension_names(group: str) -> tuple[str, ...]:
    """Return the names of a group's extensions, sorted."""
    return tuple(sorted(_entries(entry_points, group)))


def load_extension(group: str, name: str) -> Any:
    """Import one of `extension_names`; raise `CutraceError` if that fails."""
    with naming_extension(f"{name}, an entry point of {group}"):
        return _entries(entry_points, group)[name].load()


@cache
def _entries(find: Callable[..., EntryPoints], group: str) -> Mapping[str, EntryPoint]:
    """Return the installed entry points; cached, because reading them takes some milliseconds."""
    return {entry.name: entry for entry in find(group=group)}


@contextmanager
def naming_extension(who: str) -> Iterator[None]:
    """Convert any exception of the body to a `CutraceError` that names the extension."""
    try:
        yield
    except CutraceError:
        raise
    except Exception as error:
        raise CutraceError(f"{who}: raises {type(error).__name__}: {error}") from error

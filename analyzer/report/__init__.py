"""Formats of a report: one file a format, each with `render(profile) -> str`.

A format is found by listing this folder; its name is the file's.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ...errors import CutraceError, nearest

if TYPE_CHECKING:
    from ..profile import Profile


@cache
def formats() -> tuple[str, ...]:
    """The names of all formats."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def check_format(name: str) -> None:
    """Raise `CutraceError` unless there is such a format."""
    if name not in formats():
        known = ", ".join(formats())
        raise CutraceError(f"no format {name!r}{nearest(name, formats())}; there are {known}")


def render(profile: "Profile", format: str) -> str:
    """Render a profile in the format so named; `CutraceError` if there is none."""
    check_format(format)
    text: str = import_module(f"{__name__}.{format}").render(profile)
    return text

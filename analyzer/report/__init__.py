"""Report formats: one file per format, each with `render(profile) -> str`.

Formats are discovered by listing this folder; a format's name is its file's. Other packages
register functions like `render` as entry points of `cutrace.reports`.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ...base.errors import CutraceError, nearest
from ...base.plugins import REPORTS, extension_names, load_extension, naming_extension

if TYPE_CHECKING:
    from ..profile import Profile


def formats() -> tuple[str, ...]:
    """Return the names of all formats, those of other packages last."""
    return (*sorted(module.name for module in iter_modules(__path__)), *extension_names(REPORTS))


def check_format(name: str) -> None:
    """Raise `CutraceError` unless the format exists."""
    if name not in formats():
        choices = ", ".join(formats())
        raise CutraceError(f"no format {name!r}{nearest(name, formats())}; there are {choices}")


def render(profile: "Profile", format: str) -> str:
    """Render a profile in a format; `CutraceError` if it does not exist."""
    check_format(format)
    if format in extension_names(REPORTS):
        with naming_extension(f"report {format}"):
            return str(load_extension(REPORTS, format)(profile))
    text: str = import_module(f"{__name__}.{format}").render(profile)
    return text

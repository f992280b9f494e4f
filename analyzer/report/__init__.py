"""Documents: what every verb answers, and the formats that write it.

`document.py` has the value. `formats` has a file for each format of an answer, `ci` for each format
of the findings of a check; both are found by listing. Other packages register functions from a
`Profile` to text as entry points of `cutrace.reports`.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ...base.errors import CutraceError, nearest
from ...base.plugins import REPORTS, extension_names, load_extension, naming_extension
from . import ci
from . import formats as of_answers

if TYPE_CHECKING:
    from .document import Document


def formats() -> tuple[str, ...]:
    """Return the names of all formats of an answer."""
    return tuple(sorted(module.name for module in iter_modules(of_answers.__path__)))


def ci_formats() -> tuple[str, ...]:
    """Return the names of all formats of findings."""
    return tuple(sorted(module.name for module in iter_modules(ci.__path__)))


def check_format(name: str, of_profile: bool = False) -> None:
    """Raise `CutraceError` unless an answer has the format, or, of a profile, a package."""
    names = (*formats(), *(extension_names(REPORTS) if of_profile else ()))
    if name not in names:
        raise CutraceError(
            f"no format {name!r}{nearest(name, names)}; there are {', '.join(names)}"
        )


def render(document: "Document", format: str) -> str:
    """Write a document in a format; `CutraceError` if it does not exist."""
    if document.subject is not None and format in extension_names(REPORTS):
        with naming_extension(f"report {format}"):
            return str(load_extension(REPORTS, format)(document.subject))
    if document.findings is None or format not in ci_formats():
        check_format(format)
    folder = of_answers if format in formats() else ci
    text: str = import_module(f"{folder.__name__}.{format}").render(document)
    return text

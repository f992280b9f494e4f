"""Exports of a trace to formats of other programs: the files of this folder, and entry points of
`cutrace.exporters`. Files of NVIDIA's profilers, which hold counters only, are in `profilers`.

A file has the name of its format in `--to`, and defines two things; an entry point names such a
module:

    DEVICE: str                      # the device by default; empty: the format needs none
    def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str

`write` returns the text that is printed: the export itself, or its path.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

from ...base.plugins import EXPORTERS, extension_names, load_extension

if TYPE_CHECKING:
    from ...models.replay.interface.options import ReplayOptions
    from ...traces.reader import Trace


class Exporter(Protocol):
    """A module that writes one format."""

    DEVICE: str

    def write(self, trace: "Trace", out: Path | None, options: "ReplayOptions") -> str:
        """Write a trace; CutraceError if the format cannot represent it."""


def names() -> list[str]:
    """Return the names of the exports: those of this folder, then those of entry points."""
    own = [module.name.replace("_", "-") for module in iter_modules(__path__)]
    return [*own, *extension_names(EXPORTERS)]


def exporter(name: str) -> Exporter:
    """Return the export of a name from `names`."""
    if name in extension_names(EXPORTERS):
        return cast(Exporter, load_extension(EXPORTERS, name))
    return cast(Exporter, import_module(f".{name.replace('-', '_')}", __name__))

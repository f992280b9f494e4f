"""`cutrace devices`: what cutrace knows of each device, every number with its source."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import CutraceError
from .options.command_line import quote
from .options.complete import devices, starting
from .options.tabular import ReportFormat, plain_view
from .terminal.screen import width

if TYPE_CHECKING:
    from ..analyzer.report.document import Rows, Section

PANEL = "Look up"
EXAMPLES = (
    "cutrace devices",
    "cutrace devices h100",
    "cutrace devices h100 --toml",
)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A device, a file of your own, or a pattern such as 'sm_*'",
            autocompletion=starting(devices),
        ),
    ] = None,
    toml: Annotated[
        bool,
        typer.Option("--toml", help="Print its files, in which every number has its source."),
    ] = False,
    format: ReportFormat = "table",
) -> str:
    """List devices, or print the limits and the wiring of one."""
    from ..analyzer.report import check_format, render
    from ..analyzer.report.document import Document

    check_format(format)
    if toml and format != "table":
        raise CutraceError("--toml prints files; leave --format away")
    document = Document(
        plain_view(), lambda: _sections(name, toml), lambda: _rows(name), name="devices"
    )
    return render(document, format)


def _rows(name: str | None) -> "Rows":
    from ..analyzer.report.document import rows_of
    from ..models.replay.device.catalog import EVERY
    from .api.lists import devices

    return rows_of(devices(name or EVERY))


def _sections(name: str | None, toml: bool) -> "Iterator[Section]":
    """Yield the list of devices, the files of one, or its description."""
    from ..analyzer.device_report import describe_device, list_devices
    from ..analyzer.report.document import Next, listing
    from ..models.replay.device.catalog import EVERY, find_device, match_devices, read_layers
    from ..models.replay.device.device import load_device, load_devices

    if name is None or match_devices(name) is not None:
        yield [list_devices(load_devices([name or EVERY]))]
        yield [Next("cutrace devices NAME")]
        return
    device, layers = load_device(name), read_layers(find_device(name))
    if toml:
        texts = (layer.path.read_text(encoding="utf-8").splitlines() for layer in layers)
        yield from ([listing(lines)] for lines in texts)
        yield [Next(f"cutrace devices {quote(name)}")]
        return
    described = describe_device(device, [layer.path.name for layer in layers], width())
    yield [listing(described)]
    yield [Next(f"cutrace devices {quote(name)} --toml for the sources")]

"""`cutrace devices`: what cutrace knows of each device, every number with its source."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

from ..base.errors import CutraceError
from .options import complete
from .options.command_line import quote
from .options.tabular import ReportFormat, plain_view
from .options.verb import Line, argument, flag, shown, verb
from .terminal.screen import width

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.report.document import Section


@verb("Look up", "cutrace devices", "cutrace devices h100", "cutrace devices h100 --toml")
def devices(
    pattern: Annotated[
        str | None,
        argument(
            "A device, a file of your own, or a pattern such as 'sm_*'",
            "[NAME]",
            complete.starting(complete.devices),
        ),
    ] = None,
) -> "pl.DataFrame":
    """List devices, or print the limits and the wiring of one.

    In Python a frame with a row per device: its name, its board's, and what identifies it.
    """
    import polars as pl

    from ..models.replay.device.catalog import EVERY
    from ..models.replay.device.device import load_devices

    rows = [
        (
            *(d.key, d.name, ".".join(map(str, d.capability))),
            *(d.chip.sms, d.chip.clock_mhz, d.chip.memory_gb_per_s, d.chip.memory_bytes),
        )
        for d in load_devices([pattern or EVERY])
    ]
    head = ("device", "name", "capability", "sms", "clock_mhz", "memory_gb_per_s", "memory_bytes")
    return pl.DataFrame(rows, head, orient="row")


@shown(devices, is_lazy=True)
def _show(
    answer: "Callable[[], pl.DataFrame]",
    line: Line,
    toml: Annotated[bool, flag("Print its files, in which every number has its source.")] = False,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.report import render
    from ..analyzer.report.document import Document, rows_of

    if toml and format != "table":
        raise CutraceError("--toml prints files; leave --format away")
    name = line.values["pattern"]
    document = Document(
        plain_view(), lambda: _sections(name, toml), lambda: rows_of(answer()), name="devices"
    )
    return render(document, format)


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

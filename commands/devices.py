"""`cutrace devices`: what cutrace knows of each device, every number with its source."""

from typing import Annotated

import typer

from ..base.errors import CutraceError
from .options.command_line import quote
from .options.complete import devices, starting
from .options.tabular import Format, check_format, render_frame
from .terminal.screen import width

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
    format: Format = "table",
) -> str:
    """List devices, or print the limits and the wiring of one."""
    from ..analyzer.text.device_text import describe_device, list_devices
    from ..models.replay.device.catalog import EVERY, find_device, match_devices, read_layers
    from ..models.replay.device.device import load_device, load_devices

    check_format(format)
    if format != "table":
        from .api.lists import devices as frame

        if toml:
            raise CutraceError("--toml prints files; leave --format away")
        return render_frame("devices", frame(name or EVERY), format)
    if name is None or match_devices(name) is not None:
        listed = list_devices(load_devices([name or EVERY]))
        return "\n".join((*listed, "", "next: cutrace devices NAME"))
    device, layers = load_device(name), read_layers(find_device(name))
    if toml:
        texts = [layer.path.read_text(encoding="utf-8") for layer in layers]
        return "\n".join((*texts, f"next: cutrace devices {quote(name)}"))
    described = describe_device(device, [layer.path.name for layer in layers], width())
    return "\n".join(
        (*described, "", f"next: cutrace devices {quote(name)} --toml for the sources")
    )

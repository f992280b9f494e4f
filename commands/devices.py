"""`cutrace devices`: what cutrace knows of each device, every number with its source."""

import shutil
import sys
from typing import Annotated

import typer

from ._complete import devices, starting

PANEL = "Look up"


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="A device, or a file of your own", autocompletion=starting(devices)),
    ] = None,
    toml: Annotated[
        bool,
        typer.Option("--toml", help="Print its files, in which every number has its source."),
    ] = False,
) -> str:
    """List the devices, or print the limits and the wiring of one."""
    from ..analyzer.device_text import describe_device, list_devices
    from ..models.replay.catalog import find_device
    from ..models.replay.device import load_device, load_devices
    from ..models.replay.layers import read_layers

    if name is None:
        return "\n".join((*list_devices(load_devices(["all"])), "", "next: cutrace devices NAME"))
    device, layers = load_device(name), read_layers(find_device(name))
    if toml:
        texts = [layer.path.read_text(encoding="utf-8") for layer in layers]
        return "\n".join((*texts, f"next: cutrace devices {name}"))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    described = describe_device(device, [layer.path.name for layer in layers], width)
    return "\n".join((*described, "", f"next: cutrace devices {name} --toml for the sources"))

"""`cutrace devices`: what cutrace knows of each device, every number with its source."""

from typing import TYPE_CHECKING, Annotated

import typer

from ._complete import devices, starting

if TYPE_CHECKING:
    from ..models.replay.device import Device

PANEL = "Look up"
HEAD = ("name", "maker's name", "capability", "SMs", "GB/s", "threads a block", "warps an SM")


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="A device, or a file of your own", autocompletion=starting(devices)),
    ] = None,
) -> str:
    """List the devices, or print all that is known of one."""
    from ..analyzer.align import align
    from ..models.replay.catalog import find_device
    from ..models.replay.device import load_device

    if name is None:
        found = sorted(map(load_device, devices()), key=lambda device: device.capability)
        rows = [HEAD, *map(_row, found)]
        return "\n".join((*align(rows), "", "next: cutrace devices NAME"))
    load_device(name)
    text = find_device(name).read_text(encoding="utf-8")
    return f"{text}\nnext: cutrace analyze TRACE -d {name}"


def _row(device: "Device") -> tuple[str, ...]:
    """One device's line."""
    chip, limits = device.chip, device.limits
    numbers = (chip.sms, chip.memory_gb_per_s, limits.threads_per_block, limits.warps_per_sm)
    return (device.key, device.name, "{}.{}".format(*device.capability), *map(str, numbers))

"""The replay options on the command line: fields of `ReplayOptions`, given to verbs that replay."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from os import environ
from typing import Annotated, Any

import typer

from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from .command_line import takes
from .complete import devices, last_of

PANEL = "Replay options"
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="dask|ray|slurm[:WHERE]",
        rich_help_panel=PANEL,
        help="Work on a cluster: at the address of a Dask or Ray scheduler, or in a Slurm"
        " partition. Without an address N workers start here.",
    ),
]
_takes = takes(ReplayOptions, "replay", PANEL, {"device": last_of(devices)})


def replays(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a verb that replays: it takes the options, and gets them as `replay`.

    As long as it takes, the counters are known that files of devices bring.
    """

    @wraps(verb)
    def call(**values: Any) -> Any:
        from ...analyzer.counting.vocabulary import with_counters_of

        with with_counters_of(values["replay"].devices):
            return verb(**values)

    wrapper: Callable[..., Any] = _takes(call)
    return wrapper


def with_devices(options: ReplayOptions, otherwise: str = DEFAULT_DEVICE) -> ReplayOptions:
    """The options, the default device filled in.

    `CutraceError` for a device or a setting that does not exist, before anything is recorded.
    """
    from ...models.replay.device.device import load_devices

    devices = options.devices or (environ.get("CUTRACE_DEVICE") or otherwise,)
    load_devices(devices, options.set)
    return replace(options, device=devices)


def first_line(options: ReplayOptions, otherwise: str = DEFAULT_DEVICE) -> str:
    """The first line of an answer: the device, if none was chosen on the command line."""
    if options.device:
        return ""
    if device := environ.get("CUTRACE_DEVICE"):
        return f"device: {device} ($CUTRACE_DEVICE; -d chooses others)"
    reason = "the default" if otherwise == DEFAULT_DEVICE else "as old as the format"
    return f"device: {otherwise} ({reason}; -d chooses others, `cutrace devices` lists)"

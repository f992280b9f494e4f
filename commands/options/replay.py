"""Replay options on the command line: the fields of `ReplayOptions`, for verbs that replay."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from os import environ
from typing import Annotated, Any

import typer

from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from ..terminal.screen import is_quiet
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
    """Decorator of verbs that replay: adds the options, passed as `replay`.

    Counters that device files define are registered for the duration of the call.
    """

    @wraps(verb)
    def call(**values: Any) -> Any:
        from ...analyzer.counting.vocabulary import with_counters_of

        with with_counters_of(values["replay"].devices):
            return verb(**values)

    wrapper: Callable[..., Any] = _takes(call)
    return wrapper


def with_devices(options: ReplayOptions, otherwise: str = DEFAULT_DEVICE) -> ReplayOptions:
    """Return the options with the default device filled in.

    Raises `CutraceError` for an unknown device or setting, before anything is recorded.
    """
    from ...models.replay.device.device import load_devices

    devices = options.devices or (environ.get("CUTRACE_DEVICE") or otherwise,)
    load_devices(devices, options.set)
    return replace(options, device=devices)


def first_line(options: ReplayOptions, otherwise: str = DEFAULT_DEVICE) -> str:
    """Return the first line of a report: the device, if the command line selects none, and what
    `--set` changes of it.

    `--quiet` leaves it out, but for the changes.
    """
    changes = ", ".join(f"{name}={value}" for name, value in options.set.items())
    line = _first_line(options, otherwise)
    if not changes:
        return line
    named = line or f"device: {', '.join(options.devices or (otherwise,))}"
    return f"{named}, with {changes}"


def _first_line(options: ReplayOptions, otherwise: str) -> str:
    if options.device or is_quiet():
        return ""
    if device := environ.get("CUTRACE_DEVICE"):
        return f"device: {device} ($CUTRACE_DEVICE; -d chooses others)"
    reason = "the default" if otherwise == DEFAULT_DEVICE else "as old as the format"
    return f"device: {otherwise} ({reason}; -d chooses others, `cutrace devices` lists)"

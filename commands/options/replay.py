"""The devices of a replay: those of the options, else of the environment, else the default."""

from dataclasses import replace
from os import environ

from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from ..terminal.screen import is_quiet

REPLAY = ReplayOptions()
"""The defaults."""


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

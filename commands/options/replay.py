"""The replay options on the command line: fields of `ReplayOptions`, given to verbs that replay."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import environ

from ...models.replay.options import DEFAULT_DEVICE, ReplayOptions
from .command_line import takes
from .complete import devices, last_of

replays = takes(ReplayOptions, "replay", "Replay options", {"device": last_of(devices)})
"""Decorates a verb that replays: it takes the options, and gets them as `replay`."""


def with_devices(options: ReplayOptions, otherwise: str = DEFAULT_DEVICE) -> ReplayOptions:
    """The options, the default device filled in.

    `CutraceError` for a device or a setting that does not exist, before anything is recorded.
    """
    from ...models.replay.device.device import load_devices

    devices = options.devices or (environ.get("CUTRACE_DEVICE") or otherwise,)
    load_devices(devices, options.set)
    return replace(options, device=devices)


def own_counters(options: ReplayOptions) -> AbstractContextManager[None]:
    """What the devices' files bring of counters, for as long as a command takes."""
    from ...models.replay.device.catalog import is_path
    from ...models.replay.device.device import load_device

    own = [load_device(name) for name in options.devices if is_path(name)]
    if not (files := [device.counters for device in own if device.counters]):
        return nullcontext()
    from ...analyzer.counting.vocabulary import with_counters

    return with_counters(files)


def first_line(options: ReplayOptions) -> str:
    """What the first line says of a device that nobody chose on the command line."""
    if options.device:
        return ""
    if device := environ.get("CUTRACE_DEVICE"):
        return f"device: {device} ($CUTRACE_DEVICE; -d chooses others)"
    return f"device: {DEFAULT_DEVICE} (the default; -d chooses others, `cutrace devices` lists)"

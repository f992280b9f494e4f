"""Counters that device files define: registered while a command runs, if there are any."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext


def with_counters_of(devices: Iterable[str]) -> AbstractContextManager[None]:
    """Know the counters that devices' files bring for a while."""
    from ...models.replay.device.catalog import is_path
    from ...models.replay.device.device import load_device

    own = [load_device(name) for name in devices if is_path(name)]
    if not (files := [device.counters for device in own if device.counters]):
        return nullcontext()
    from .vocabulary import with_counters

    return with_counters(files)

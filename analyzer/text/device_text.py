"""A device as text: its chip, its limits, and how its stages are wired."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from textwrap import wrap
from typing import Any

from ...models.replay.device.device import Device
from ...models.replay.device.wiring import Stage
from ...models.replay.seam import ACCESSES
from .align import align
from .diagram import draw

WIDTH = 100
"""Columns where there is no terminal to say."""
UNITS = ("bytes", "KB", "MB", "GB")
SCOPES = {"sm": "one an SM", "cluster": "one a cluster", "gpu": "one"}
NO_BREAK = "\xa0"
LIST_HEAD = ("name", "maker's name", "cc", "SMs", "GB/s")


def list_devices(devices: Sequence[Device]) -> list[str]:
    """A line for each device."""
    return align([LIST_HEAD, *map(_row, devices)])


def _row(device: Device) -> tuple[str, ...]:
    sms, bandwidth = device.chip.sms, device.chip.memory_gb_per_s
    return (device.key, device.name, _capability(device), str(sms), f"{bandwidth:g}")


def _capability(device: Device) -> str:
    return "{}.{}".format(*device.capability)


def describe_device(device: Device, files: Sequence[str], width: int | None) -> list[str]:
    """All that is known of a device; `files` are its own and those that it is based on."""
    columns = width or WIDTH
    return [
        f"{device.name}, compute capability {_capability(device)}",
        *wrap(f"file: {', on '.join(files)}", columns, subsequent_indent="  "),
        *_table("chip", device.chip, columns),
        *_table("limits", device.limits, columns),
        *_table("rates", device.rates, columns),
        "",
        *draw(wiring(device), dict(_sizes(device))),
        *(line for stage in device.stages for line in _stage(stage, columns)),
    ]


def wiring(device: Device) -> Any:
    """The state spaces and stages of a device as a networkx DiGraph."""
    import networkx as nx

    graph = nx.DiGraph()
    fed = {source for stage in device.stages for source in stage.sources}
    graph.add_nodes_from(space for space in ACCESSES if space in fed)
    graph.add_edges_from((source, s.name) for s in device.stages for source in s.sources)
    return graph


def _sizes(device: Device) -> Iterator[tuple[str, str]]:
    """What stands below the names of stages that have a size."""
    for stage in device.stages:
        size = stage.keys.get("bytes")
        if stage.model == "cache" and isinstance(size, int):
            yield stage.name, _size(size)
        if stage.model == "memory" and device.chip.memory_bytes:
            yield stage.name, _size(device.chip.memory_bytes)


def _size(value: int) -> str:
    """A number of bytes in the largest unit that leaves few digits.

    >>> _size(65536), _size(1310720), _size(500)
    ('64 KB', '1.25 MB', '500 bytes')
    """
    power = min(len(UNITS) - 1, max(0, (value.bit_length() - 1) // 10))
    return f"{value / 1024**power:.4g} {UNITS[power]}"


def _table(name: str, values: Any, columns: int) -> Iterator[str]:
    """The keys of a table, as `--set` names them."""
    yield ""
    yield f"[{name}]"
    keys = [field.name for field in fields(values)]
    size = max(map(len, keys)) + 2
    for key in keys:
        lines = wrap(_text(getattr(values, key)), columns - size)
        yield from (f"{head:{size}}{line}" for head, line in zip([key, ""], lines, strict=False))


def _stage(stage: Stage, columns: int) -> Iterator[str]:
    """A stage: what it is, where it comes from, and its keys."""
    yield ""
    scope = SCOPES.get(stage.scope, f"one for {stage.scope} SMs")
    yield f"[{stage.name}] {stage.model}, {scope}, from {', '.join(stage.sources)}"
    keys = {**stage.keys, **({"beside_shared": True} if stage.beside_shared else {})}
    words = (f"{key} = {_text(value)}".replace(" ", NO_BREAK) for key, value in keys.items())
    lines = wrap(", ".join(words), columns, initial_indent="  ", subsequent_indent="  ")
    yield from (line.replace(NO_BREAK, " ") for line in lines)


def _text(value: object) -> str:
    """A value as TOML has it.

    >>> _text((1, 2)), _text(["a"]), _text(True)
    ('[1, 2]', '["a"]', 'true')
    """
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value}"

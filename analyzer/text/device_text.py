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
MEANINGS = {
    "carveout_fallback": "which size of shared memory is taken where a block does not fit",
    "carveout_roomy": "up to how many bytes the driver takes a larger one than it must; 0: never",
    "idc": "the constant cache of an SM",
    "l15": "the constant cache of level 1.5, behind that of an SM",
    "lrc": "reads once what several SMs read at the same time, before L2",
    "pair_merge": "pairs of lanes that load 8 or 16 bytes from one address count as one lane",
    "wavers": "the line that makes room may be the second oldest",
    "on_the_way": "cycles until a store has reached the next level, at least and at most",
    "dirty_bytes": "the most that may wait to be written",
    "partial_bytes": "the same, of lines that are stored in part",
    "fetch": "bytes that a miss fetches together",
    "merge_lanes": "lanes of 4, 8 and 16 bytes whose transactions are joined",
    "request_lanes": "lanes of 4, 8 and 16 bytes that are served at a time",
}
"""Keys and stages of devices that their names do not tell."""
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
        "",
        *_meanings(device, columns),
    ]


def _meanings(device: Device, columns: int) -> Iterator[str]:
    """Explanations of keys and stages whose names do not explain themselves."""
    stages = {name for stage in device.stages for name in (stage.name, *stage.keys)}
    limits = {field.name for field in fields(device.limits)}
    for name, meaning in MEANINGS.items():
        if name in stages | limits:
            yield from wrap(f"{name}: {meaning}", columns, subsequent_indent="  ")


def wiring(device: Device) -> Any:
    """The state spaces and stages of a device as a networkx DiGraph."""
    import networkx as nx

    graph = nx.DiGraph()
    fed = {source for stage in device.stages for source in stage.sources}
    graph.add_nodes_from(space for space in ACCESSES if space in fed)
    graph.add_edges_from((source, s.name) for s in device.stages for source in s.sources)
    return graph


def _sizes(device: Device) -> Iterator[tuple[str, str]]:
    """The sizes of caches and memory, printed below their names."""
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
    number = value / 1024**power
    return f"{number:.0f} {UNITS[power]}" if number >= 100 else f"{number:.4g} {UNITS[power]}"


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
    """A stage: its model, its source, and its keys."""
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

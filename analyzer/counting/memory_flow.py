"""Memory flow: the bytes of a launch from the warps through the caches to memory.

A flow is the value of a picture: boxes in columns, and links with the bytes in each direction.
Boxes are the warps, the accessed state spaces, the device's cache stages, and its memory. Bytes are
the integers of the models. On a device without modelled caches the flow ends at memory.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.wiring import Stage
from ...models.replay.interface.model import ACCESSES
from .bounds import HOST

TITLES = {
    "global": "Global",
    "local": "Local",
    "texture": "Texture",
    "const": "Constant",
    "shared": "Shared",
    "bulk": "Bulk copies",
}
"""State spaces of the picture, top to bottom."""
CACHES = {
    **{"l1": "L1", "l2": "L2", "dram": "Memory"},
    **{"tex": "Texture cache", "tex2": "Texture level 2"},
    **{"idc": "Constant cache", "l15": "Constant level 1.5"},
}
"""Labels of stages in the picture; other stages keep their names."""
WARPS, MEMORY = "warps", "memory"
LOOKUPS, READ = "read_hits", "bytes_read"
"""A counter that only caches have, and one that only memories have."""
COST = (("transactions", "ideal_transactions"), ("passes", "ideal_passes"), ("sectors", ""))


NEEDED = "needed"
"""Marker of a box line that states the ideal cost of the same accesses."""


@dataclass(frozen=True, slots=True)
class Box:
    """A unit with a title and lines of its counts. `column` counts from the warps."""

    name: str
    title: str
    column: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Bytes between two boxes: `loads` towards the warps, `stores` away from them."""

    near: str
    far: str
    loads: int
    stores: int


@dataclass(frozen=True, slots=True)
class Flow:
    """All boxes and the links between them; only the warps' box if nothing was accessed."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]


def trace_flow(counts: pl.DataFrame, device: Device) -> Flow:
    """Build the flow from a launch's raw counts on a device."""
    names = [name for name, dtype in counts.schema.items() if dtype == pl.Int64]
    sums = {
        name: int(value or 0)
        for name, value in counts.select(names).sum().row(0, named=True).items()
    }
    return _Tracer(sums, device).trace()


@dataclass(frozen=True, slots=True)
class _Tracer:
    """The sums of raw counters, and their device."""

    sums: Mapping[str, int]
    device: Device

    def trace(self) -> Flow:
        """Follow each accessed space through the units that serve it."""
        spaces = [space for space in TITLES if self.add([space], "requests")]
        ways = {space: self.units(space) for space in spaces}
        units = [s for s in self.device.stages if any(s in way for way in ways.values())]
        boxes = [Box(WARPS, "Warps", 0, (_requests(self.add(spaces, "requests")),))]
        boxes += [Box(space, TITLES[space], 1, self.describe(space)) for space in spaces]
        columns: dict[str, int] = dict.fromkeys(spaces, 1)
        links: dict[tuple[str, str], Link] = {}
        for space, way in ways.items():
            _add(links, Link(WARPS, space, *self.requested_bytes(space)))
            near = space
            for unit in way:
                columns[unit.name] = max(columns.get(unit.name, 0), columns[near] + 1)
                came = self.moved(space) if near == space else self.served(unit, space)
                _add(links, Link(near, unit.name, *came))
                near = unit.name
            if not way and space != "shared":
                _add(links, Link(space, MEMORY, *self.moved(space)))
        for unit in units:
            mine = [space for space, way in ways.items() if unit in way]
            title = CACHES.get(unit.name, unit.name)
            boxes.append(Box(unit.name, title, columns[unit.name], self.describe_cache(unit, mine)))
        host = tuple(self.sums.get(name, 0) for name in HOST.values())
        if any(host):
            memory = next(unit.name for unit in units if self.is_memory(unit, spaces))
            near = next(link.near for link in links.values() if link.far == memory)
            boxes.append(Box("host", "Host memory", columns[memory], ("over PCIe",)))
            _add(links, Link(near, "host", *host))
        if any(link.far == MEMORY for link in links.values()):
            boxes.append(Box(MEMORY, "Memory", 2, ("caches not modelled",)))
        return Flow(tuple(boxes), tuple(links.values()))

    def add(self, spaces: Sequence[str], what: str, accesses: Sequence[str] = ()) -> int:
        """Return the sum of a raw counter over spaces and accesses (none: all)."""
        return sum(
            self.sums.get(f"{space}_{access}_{what}", 0)
            for space in spaces
            for access in ACCESSES[space]
            if not accesses or access in accesses
        )

    def units(self, space: str) -> list[Stage]:
        """Return the caches that serve a space and the memory, in lookup order.

        Skip a cache of an SM without a lookup for the space.
        """
        return [
            stage
            for stage in self.device.stages
            if self.knows(stage, space)
            and space in _serves(stage, space)
            and (stage.scope == "gpu" or any(self.served(stage, space)))
        ]

    def knows(self, stage: Stage, space: str) -> bool:
        """Return whether a stage is a cache or a memory that sees accesses to a space."""
        return any(
            f"{space}_{access}_{stage.name}_{what}" in self.sums
            for access in ACCESSES[space]
            for what in (LOOKUPS, READ)
        )

    def served(self, stage: Stage, space: str) -> tuple[int, int]:
        """Return the bytes that a stage delivered and received for a space."""
        name, sector = stage.name, int(str(stage.keys.get("sector", 0)))
        if not sector:
            return self.add([space], f"{name}_{READ}"), self.add([space], f"{name}_bytes_written")
        reads, writes = (self.add([space], f"{name}_{what}") for what in ("reads", "writes"))
        return reads * sector, writes * sector

    def requested_bytes(self, space: str) -> tuple[int, int]:
        """Return the bytes that loads and stores requested; an atomic counts as both."""
        return (
            self.add([space], "bytes_asked", ("load", "atomic")),
            self.add([space], "bytes_asked", ("store", "atomic", "reduction")),
        )

    def moved(self, space: str) -> tuple[int, int]:
        """Return the load and store bytes of a space's transactions."""
        if space == "const":
            return self.requested_bytes(space)
        return (
            self.add([space], "bytes_moved", ("load", "atomic")),
            self.add([space], "bytes_moved", ("store", "atomic", "reduction")),
        )

    def describe(self, space: str) -> tuple[str, ...]:
        """Return the lines of a space's box: requests, their cost, and the ideal cost."""
        lines = [_requests(self.add([space], "requests"))]
        for unit, ideal in COST:
            if cost := self.add([space], unit):
                least = self.add([space], ideal) if ideal else cost
                lines.append(f"{cost:,} {unit}")
                lines += [f"{least:,} {NEEDED}"] if least < cost else []
        return tuple(lines)

    def describe_cache(self, stage: Stage, spaces: Sequence[str]) -> tuple[str, ...]:
        """Return the lines of a box: a cache's hit rates; of memory, that it gets no stores."""
        lines = []
        for what in ("read", "write"):
            requests = self.add(spaces, f"{stage.name}_{what}s")
            if requests:
                hits = self.add(spaces, f"{stage.name}_{what}_hits")
                lines.append(f"{100 * hits / requests:.3g} % of {what}s hit")
        if self.is_memory(stage, spaces) and not any(self.served(stage, s)[1] for s in spaces):
            stores = any(
                self.add([s], "requests", ("store", "atomic", "reduction")) for s in spaces
            )
            lines += ["stores stay in L2"] if stores else []
        return tuple(lines)

    def is_memory(self, stage: Stage, spaces: Sequence[str]) -> bool:
        """Return whether a stage is a memory behind caches."""
        return any(
            f"{space}_{access}_{stage.name}_{READ}" in self.sums
            for space in spaces
            for access in ACCESSES[space]
        )


def _add(links: dict[tuple[str, str], Link], link: Link) -> None:
    """Add a link's bytes to an existing link between the same boxes."""
    key = link.near, link.far
    old = links.get(key, Link(*key, 0, 0))
    links[key] = Link(*key, old.loads + link.loads, old.stores + link.stores)


def _serves(stage: Stage, space: str) -> Sequence[object]:
    """Return the state spaces that a stage looks up, one or several."""
    serves = stage.keys.get("serves", (space,))
    return serves if isinstance(serves, list | tuple) else (serves,)


def _requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number:,} requests"

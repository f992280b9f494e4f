"""Where the bytes of a launch go: from the warps through the caches that a device has to memory.

A flow is a picture's value: boxes in columns, and links with the bytes that pass each way. Boxes
are the warps, a state space each that was accessed, the device's caches by their stages, and its
memory. Bytes are the models' integers; a device whose caches nobody modelled ends at its memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ..models.replay.device import Device
from ..models.replay.seam import ACCESSES
from ..models.replay.wiring import Stage

TITLES = {
    "global": "Global",
    "local": "Local",
    "texture": "Texture",
    "const": "Constant",
    "shared": "Shared",
}
"""The state spaces that are drawn, top to bottom."""
CACHES = {"l1": "L1", "l2": "L2", "dram": "Memory", "idc": "Constant cache", "tex": "Texture cache"}
"""What stages are called in a picture; others by their own names."""
WARPS, MEMORY = "warps", "memory"
LOOKUPS, READ = "read_hits", "bytes_read"
"""A counter that only caches have, and one that only memories have."""
COST = (("transactions", "ideal_transactions"), ("passes", "ideal_passes"), ("sectors", ""))


@dataclass(frozen=True, slots=True)
class Box:
    """A unit: its title, and lines of what happened there. `column` counts from the warps."""

    name: str
    title: str
    column: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """What passes between two boxes, in bytes: `loads` towards the warps, `stores` away."""

    near: str
    far: str
    loads: int
    stores: int


@dataclass(frozen=True, slots=True)
class Flow:
    """All boxes, and the links between them; no boxes but the warps where nothing was accessed."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]


def trace_flow(counts: pl.DataFrame, device: Device) -> Flow:
    """The flow of a launch's raw counts on a device."""
    names = [name for name, dtype in counts.schema.items() if dtype == pl.Int64]
    sums = {
        name: int(value or 0)
        for name, value in counts.select(names).sum().row(0, named=True).items()
    }
    return _Tracer(sums, device).trace()


@dataclass(frozen=True, slots=True)
class _Tracer:
    """The sums of raw counters, and the device that has them."""

    sums: Mapping[str, int]
    device: Device

    def trace(self) -> Flow:
        spaces = [space for space in TITLES if self.add([space], "requests")]
        units = [stage for stage in self.units() if self.spaces_of(stage, spaces)]
        boxes = [Box(WARPS, "Warps", 0, (_requests(self.add(spaces, "requests")),))]
        boxes += [Box(space, TITLES[space], 1, self.describe(space)) for space in spaces]
        columns = {space: 1 for space in spaces}
        links = [Link(WARPS, space, *self.asked(space)) for space in spaces]
        for stage in units:
            near = self.near(stage, units, spaces)
            columns[stage.name] = 1 + max(columns[name] for name in near)
            title = CACHES.get(stage.name, stage.name)
            lines = self.describe_cache(stage, self.spaces_of(stage, spaces))
            boxes.append(Box(stage.name, title, columns[stage.name], lines))
            links += self.into(stage, near, units, spaces)
        if not units and (rest := [space for space in spaces if space != "shared"]):
            boxes.append(Box(MEMORY, "Memory", 2, ("caches not modelled",)))
            links += [Link(space, MEMORY, *self.moved(space)) for space in rest]
        return Flow(tuple(boxes), tuple(links))

    def add(self, spaces: Sequence[str], what: str, accesses: Sequence[str] = ()) -> int:
        """The sum of a raw counter over spaces and accesses (none: all)."""
        return sum(
            self.sums.get(f"{space}_{access}_{what}", 0)
            for space in spaces
            for access in ACCESSES[space]
            if not accesses or access in accesses
        )

    def units(self) -> list[Stage]:
        """The device's caches and its memory, each behind those that feed it."""
        return [
            stage
            for stage in self.device.stages
            if any(
                name.endswith((f"_{stage.name}_{LOOKUPS}", f"_{stage.name}_{READ}"))
                for name in self.sums
            )
        ]

    def spaces_of(self, stage: Stage, spaces: Sequence[str]) -> list[str]:
        """The accessed spaces of which anything reaches a stage."""
        known = {LOOKUPS, READ}
        return [
            space
            for space in spaces
            if any(
                f"{space}_{access}_{stage.name}_{what}" in self.sums
                for access in ACCESSES[space]
                for what in known
            )
        ]

    def near(self, stage: Stage, units: Sequence[Stage], spaces: Sequence[str]) -> list[str]:
        """The boxes that feed a stage: other units, and spaces that come straight to it."""
        before = [unit for unit in units if unit.name in stage.sources]
        through = {space for unit in before for space in self.spaces_of(unit, spaces)}
        straight = [space for space in self.spaces_of(stage, spaces) if space not in through]
        return [*straight, *(unit.name for unit in before)]

    def into(
        self, stage: Stage, near: Sequence[str], units: Sequence[Stage], spaces: Sequence[str]
    ) -> Iterator[Link]:
        """The links into a stage. What reaches a cache from a space is what the space moved."""
        by_name = {unit.name: unit for unit in units}
        for name in near:
            if name in by_name:
                mine = self.spaces_of(by_name[name], spaces)
                yield Link(name, stage.name, *self.served(stage, mine))
            else:
                yield Link(name, stage.name, *self.moved(name))

    def served(self, stage: Stage, spaces: Sequence[str]) -> tuple[int, int]:
        """Bytes that a stage gave and took for some spaces."""
        name = stage.name
        if self.is_memory(stage):
            return self.add(spaces, f"{name}_{READ}"), self.add(spaces, f"{name}_bytes_written")
        sector = int(str(stage.keys.get("sector", 1)))
        return self.add(spaces, f"{name}_reads") * sector, self.add(
            spaces, f"{name}_writes"
        ) * sector

    def is_memory(self, stage: Stage) -> bool:
        """Whether a stage counts bytes and keeps nothing."""
        return any(name.endswith(f"_{stage.name}_{READ}") for name in self.sums)

    def asked(self, space: str) -> tuple[int, int]:
        """Bytes that the lanes of loads and of stores asked for; an atomic does both."""
        return (
            self.add([space], "bytes_asked", ("load", "atomic")),
            self.add([space], "bytes_asked", ("store", "atomic", "reduction")),
        )

    def moved(self, space: str) -> tuple[int, int]:
        """Bytes of a space's transactions."""
        if space == "const":
            return self.asked(space)
        return (
            self.add([space], "bytes_moved", ("load", "atomic")),
            self.add([space], "bytes_moved", ("store", "atomic", "reduction")),
        )

    def describe(self, space: str) -> tuple[str, ...]:
        """What a space's box says: requests, what they cost, what would do."""
        lines = [_requests(self.add([space], "requests"))]
        for unit, ideal in COST:
            if cost := self.add([space], unit):
                least = self.add([space], ideal) if ideal else cost
                lines.append(f"{cost} {unit}")
                lines += [f"{least} would do"] if least < cost else []
        return tuple(lines)

    def describe_cache(self, stage: Stage, spaces: Sequence[str]) -> tuple[str, ...]:
        """What a cache's box says: the parts of what it was asked for that it had."""
        lines = []
        for what in ("read", "write"):
            asked = self.add(spaces, f"{stage.name}_{what}s")
            if asked:
                hits = self.add(spaces, f"{stage.name}_{what}_hits")
                lines.append(f"{hits} of {asked} {what}s hit")
        return tuple(lines)


def _requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number} requests"

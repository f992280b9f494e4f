"""Asynchronous units of 9.0: bulk copies that a warp awaits at mbarriers, and products of
warpgroups.

A block requests `stages` copies ahead from the engine of bulk copies and awaits them one by one.
The copy of a wait was requested when the wait `stages` before it was over: with one stage each wait
takes the whole latency, with more only what the work between them leaves. A warp that does not copy
itself hands the place over to the warp that does, by an mbarrier. The engine serves an SM's copies
in order, at its bandwidth; those of L2 and of memory are units of their own (`units.py`).

Products (`wgmma`) take the tensor pipe one after the other; a wait for a group takes until its last
product has left the pipe. All numbers are measured (`scripts/measure/hopper.cu`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.measured import Measured
from ...traces.identity_cache import rows_of
from ...traces.schema import Launch

COPY = re.compile(r"cp\.(?:reduce\.)?async\.bulk\.(?:tensor\.\dd\.)?(shared::\w+|global)")
"""A bulk copy, and its destination."""
START = re.compile(r"cp\.(?:reduce\.)?async\.|wgmma\.mma_async")
ARRIVE = re.compile(r"mbarrier\.arrive(?!\.expect_tx)")
EXPECT = re.compile(r"mbarrier\.(?:arrive\.)?expect_tx")
GROUPS = re.compile(r"(wgmma|cp\.async\.bulk|cp\.async)\.wait_group[.\w]* (\d+)")
PRODUCT = re.compile(r"wgmma\.mma_async[.\w]*?\.m64n(\d+)k\d+")
DEPBAR, WARPGROUP, GMMA = 0x11A, 0x1C5, 0x1F0
"""Operations of waits for copies, of waits for products, and of products."""
ASKS, STORES_COMMITTED = frozenset({0x1B4, 0x1BA}), 0x1B7
"""UTMALDG and UBLKCP; UTMACMDFLUSH, which closes a group of bulk stores."""


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """What a launch asks of these units. Times are in cycles.

    A copy arrives `load_cycles` after it was asked for, and `engine_cycles` after the one before.
    `stages` are on the way at a time; `map_cycles` is the time in which
    the engine reads a tensor map first, `hand_over` the time in which a waiting warp tells another
    that a place is free. `stored_cycles` and `read_cycles` are a bulk store's, to its end and to
    that of its reads. `groups` are the groups that may stay open at the waits for them, by pc,
    `reads` the pcs of waits for reads alone, `stores` those of bulk stores. `product_cycles` are a
    product's on the tensor pipe, `product_latency` what is added to the last one.
    """

    stages: int = 1
    load_cycles: float = 0.0
    engine_cycles: float = 0.0
    map_cycles: float = 0.0
    hand_over: float = 0.0
    stored_cycles: float = 0.0
    read_cycles: float = 0.0
    groups: Mapping[int, int] = field(default_factory=dict)
    reads: frozenset[int] = frozenset()
    stores: frozenset[int] = frozenset()
    product_cycles: float = 0.0
    product_latency: float = 0.0
    stall: str = "l2"


@dataclass(slots=True)
class InFlight:
    """The asynchronous work of one warp, on its clock."""

    facts: Asynchronous
    asked: float | None = None
    waits: list[float] = field(default_factory=list)
    arrived: float = 0.0
    pipe: float = 0.0
    products: list[float] = field(default_factory=list)
    stores: list[float] = field(default_factory=list)
    copies: list[float] = field(default_factory=list)
    is_grouped: bool = False

    def ask(self, now: float) -> None:
        """Ask for a copy."""
        if self.asked is None:
            self.asked = now

    def await_copy(self, now: float) -> float:
        """Return when the copy that a warp waits for from `now` on has arrived."""
        facts = self.facts
        self.waits.append(now)
        if len(self.waits) > facts.stages:
            begin = self.waits[-facts.stages] + (facts.hand_over if self.asked is None else 0.0)
        else:
            begin = self.waits[0] if self.asked is None else self.asked
        if len(self.waits) == 1:
            begin += facts.map_cycles
        self.arrived = max(begin + facts.load_cycles, self.arrived + facts.engine_cycles)
        return self.arrived

    def multiply(self, now: float) -> None:
        """Start a product of the open group."""
        self.pipe = max(self.pipe, now) + self.facts.product_cycles
        if self.is_grouped:
            self.products[-1] = self.pipe
        else:
            self.products.append(self.pipe)
        self.is_grouped = True

    def await_products(self, pc: int) -> float:
        """Close the group; return when all groups but those that may stay open have ended."""
        self.is_grouped = False
        return self._end(self.products, pc) + self.facts.product_latency

    def store(self, now: float) -> None:
        """Start the bulk stores of a group."""
        self.stores.append(now)

    def await_group(self, pc: int) -> float:
        """Return when the groups of copies that a wait names have ended."""
        if pc in self.facts.reads:
            return self._end(self.stores, pc) + self.facts.read_cycles if self.stores else 0.0
        if self.stores:
            return self._end(self.stores, pc) + self.facts.stored_cycles
        return self._end(self.copies, pc)

    def _end(self, ends: list[float], pc: int) -> float:
        place = len(ends) - 1 - self.facts.groups.get(pc, 0)
        return ends[place] if place >= 0 else 0.0

    def shift(self, cycles: float) -> None:
        """Move everything that is in flight with the clock."""
        self.asked = self.asked if self.asked is None else self.asked + cycles
        self.arrived += cycles
        self.pipe += cycles
        for times in (self.waits, self.products, self.stores, self.copies):
            times[:] = [each + cycles for each in times]


def read_asynchronous(
    launch: Launch,
    instructions: pa.Table,
    sums: Mapping[int, Mapping[str, int]],
    farther: Callable[[int], float],
    at_once: int,
    sms: int,
    measured: Measured,
    mhz: float,
) -> Asynchronous | None:
    """Return what a launch asks of asynchronous units; None if nothing.

    `sums` are the sums of raw counts by pc, `farther` returns the share of a bulk load's requests
    that wait for memory. The chip has `sms` SMs and runs `at_once` blocks at a time.
    """
    rows = rows_of(instructions, "pc", "block", "class", "text")
    if not any(START.search(row["text"]) for row in rows):
        return None
    groups = {row["pc"]: int(found[2]) for row in rows if (found := GROUPS.search(row["text"]))}
    reads = {row["pc"] for row in rows if "bulk.wait_group.read" in row["text"]}
    stores = {
        row["pc"] for row in rows if (found := COPY.search(row["text"])) and found[1] == "global"
    }
    ran = _executions(rows, sums)
    facts = Asynchronous(groups=groups, reads=frozenset(reads), stores=frozenset(stores))
    facts = _with_loads(facts, launch, rows, sums, ran, farther, at_once, sms, measured, mhz)
    return _with_products(_with_stores(facts, rows, sums, ran, measured), rows, ran, measured)


def _executions(
    rows: Sequence[Mapping[str, Any]], sums: Mapping[int, Mapping[str, int]]
) -> Mapping[int, int]:
    return {row["pc"]: sums.get(row["pc"], {}).get("instructions") or 0 for row in rows}


def _with_loads(
    facts: Asynchronous,
    launch: Launch,
    rows: Sequence[Mapping[str, Any]],
    sums: Mapping[int, Mapping[str, int]],
    ran: Mapping[int, int],
    farther: Callable[[int], float],
    at_once: int,
    sms: int,
    measured: Measured,
    mhz: float,
) -> Asynchronous:
    """Add the times of bulk loads, and how many are on the way."""
    loads = {row["pc"]: ran[row["pc"]] for row in rows if _loads(row["text"])}
    copies = sum(loads.values())
    if not copies:
        return facts
    expected = sum(ran[row["pc"]] for row in rows if EXPECT.search(row["text"]))
    inits = sum(ran[row["pc"]] for row in rows if "mbarrier.init" in row["text"])
    is_paired = any(ARRIVE.search(row["text"]) and ran[row["pc"]] for row in rows)
    phases = expected or copies
    moved = sum(sums.get(pc, {}).get("bulk_load_bytes_distinct") or 0 for pc in loads)
    size = moved / phases
    shared = launch.shared_static + launch.shared_dynamic
    barriers = inits / launch.blocks / (2 if is_paired else 1)
    stages = int(min(barriers, shared / size if size else barriers, phases / launch.blocks))
    near, far = measured.bulk_load_cycles(size, mhz)
    share = sum(farther(pc) * many for pc, many in loads.items()) / copies
    reads, hits = (
        sum(sums.get(pc, {}).get(f"bulk_load_l2_{name}") or 0 for pc in loads)
        for name in ("reads", "read_hits")
    )
    missed = 1 - hits / reads if reads else 0.0
    engine = size * max(
        min(at_once, -(-at_once // sms)) / measured.bulk_bytes,
        at_once * mhz / 1000 / measured.l2_gb_per_s(),
        at_once * missed * mhz / 1000 / measured.dram_gb_per_s(),
    )
    maps = any("bulk.tensor" in row["text"] for row in rows)
    return replace(
        facts,
        stages=max(1, stages),
        load_cycles=near + share * (far - near) + engine,
        engine_cycles=engine,
        map_cycles=measured.dram_cycles(mhz) if maps else 0.0,
        hand_over=2 * measured.hand_over_cycles,
        stall="dram" if share > 0.3 else "l2",
    )


def _loads(text: str) -> bool:
    found = COPY.search(text)
    return found is not None and found[1] != "global" and "global" in text


def _with_stores(
    facts: Asynchronous,
    rows: Sequence[Mapping[str, Any]],
    sums: Mapping[int, Mapping[str, int]],
    ran: Mapping[int, int],
    measured: Measured,
) -> Asynchronous:
    """Add the times of bulk stores."""
    commits = sum(ran[row["pc"]] for row in rows if "bulk.commit_group" in row["text"])
    names = "bulk_store_bytes_distinct", "bulk_reduction_bytes_distinct"
    moved = sum(sums.get(pc, {}).get(name) or 0 for pc in facts.stores for name in names)
    if not moved or not commits:
        return facts
    stored, read = measured.bulk_store_cycles(moved / commits)
    return replace(facts, stored_cycles=stored, read_cycles=read)


def _with_products(
    facts: Asynchronous,
    rows: Sequence[Mapping[str, Any]],
    ran: Mapping[int, int],
    measured: Measured,
) -> Asynchronous:
    """Add the mean time of a warpgroup's products on the tensor pipe."""
    products = [
        (ran[row["pc"]], measured.product_cycles(int(found[1])))
        for row in rows
        if (found := PRODUCT.search(row["text"]))
    ]
    many = sum(count for count, _ in products)
    if not many:
        return facts
    cycles = sum(count * each for count, each in products) / many
    return replace(facts, product_cycles=cycles, product_latency=measured.product_latency)

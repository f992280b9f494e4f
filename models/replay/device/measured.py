"""Measured: the latencies, rates and bandwidths of a chip, written by
`scripts/measure/latencies.py`.

`models/devices/measured/sm_NN.csv` holds the raw results of one chip of a compute capability. The
script documents its lines; `contention.py` beside it wrote the others. A file of a single device
(`h100.csv`) overrides results of its capability; its launch overhead was measured at the profiler's
clock alone.

Chips that nobody here could measure: `models/devices/measured/sm_NN.toml` has what others measured
on chips of a capability, with its source. Everything else is taken from the chip of 9.0 that was
measured (sm_90.csv), with the device's own clock and bandwidths, and with the rates of its
arithmetic units. Capabilities without either have bounds and no estimate.
"""

import csv
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from ....base.config import read_toml
from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ..schedule.place import Chip
from .catalog import FOLDER
from .device import Device, Rates

PRODUCT = re.compile(r"wgmma\.mma_async[.\w]*?\.m64n(\d+)k\d+")
MATRIX = re.compile(r"w?mma\.\S*?m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)(?P<types>\.\S+)")
TYPES = re.compile(r"[fbtseu]+\d+\w*")
RATE_OF_PRODUCT = re.compile(r"(?P<factor>\w+?)_(?P<sums>\w+?)_168(?P<depth>\d+)_rate")
BITS = {"tf32": 32, "f32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}
WARPS_OF_A_GROUP = 4
Key = tuple[str, str, int]
ONE_CLOCK = ("empty_none", "blocks_none")
"""Results that a single device's file does not have."""
OF_A_CLASS = {
    "half": "fma.rn.f16x2",
    "single": "fma.rn.f32",
    "double": "fma.rn.f64",
    "integer": "mad.lo.s32",
    "other": "mad.lo.s32",
}
"""The instruction that represents a class without measurements of its own."""
WITHIN = 1 / 1.25, 1 / 0.75
"""Ends of measured over estimated times on 9.0: 9 of 10 estimates are within 25 % of what was
measured (docs/time.md)."""
LIKE = {
    **{"rem.s32": "div.s32", "div.u32": "rem.u32", "div.s64": "div.u64"},
    **{"rem.u64": "div.u64", "rem.s64": "div.u64", "div.full": "rcp.approx.f32"},
    **{"div.approx": "rcp.approx.f32", "cos.approx": "sin.approx.f32"},
    **{"popc": "rsqrt.approx.f32", "clz": "rsqrt.approx.f32", "add.rn.f64": "add.f64"},
}
"""Instructions that the assembler makes of the same parts as a measured one."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of a chip. Latencies are in cycles, `rate` in cycles of an SM.

    `interval` are the ends of measured over estimated times of most launches.
    """

    values: Mapping[Key, float]
    interval: tuple[float, float] = WITHIN

    def at(self, what: str, name: str, place: int = 0) -> float:
        """Return one line of the file."""
        return self.values[what, name, place]

    def costs(self, mnemonic: str, class_: str) -> tuple[float, float]:
        """Return latency and rate of an arithmetic instruction, its own or those of a like one."""
        name = self._measured_as(mnemonic) or OF_A_CLASS.get(class_, "")
        if class_ == "conversion" and not self._measured_as(mnemonic):
            pair = "cvt.f64+cvt.f32" if "f64" in mnemonic else "cvt.f32+cvt.s32"
            return self.at("latency", pair) / 2, self.at("rate", pair) / 2
        if class_ == "exchange" and not self._measured_as(mnemonic):
            return self.at("chase", "chase_shared"), 1.0  # through the same crossbar
        if not name:
            return 0.0, 0.25
        return self.at("latency", name), self.at("rate", name)

    @lru_cache(maxsize=1024)  # noqa: B019 (there is one of these for each device, for good)
    def _measured_as(self, mnemonic: str) -> str:
        return _like(mnemonic) or max(
            (n for w, n, _ in self.values if w == "latency" and mnemonic.startswith(n)),
            key=len,
            default="",
        )

    @property
    def _mhz(self) -> float:
        return self.at("profiler", "mhz_none")

    @property
    def profiler_mhz(self) -> float:
        """The default clock of the SMs under the profiler."""
        return self.at("profiler", "mhz_base")

    def launch_ns(self, mhz: float) -> float:
        """Return the time of an empty kernel."""
        return self._between("empty", 32, mhz)

    @property
    def l2_of_launch_ns(self) -> float | None:
        """Return the L2 lookup time of an empty kernel; None where it was not measured."""
        return self.values.get(("profiler", "empty_l2_base", 32))

    def print_ns(self, calls: float, warps: float, lanes: float, mhz: float) -> float:
        """Return the additional time of a launch that prints.

        A warp's `calls` follow one another. The calls of all `warps` take their turns, and so do
        those of all their `lanes`, the first of which pass while the first call is under way.
        """
        first = self._between("prints", 0, mhz) - self.launch_ns(mhz)
        own = (calls - 1) * self.at("print", "again")
        turns = (warps - 1) * self.at("print", "warp")
        passing = lanes * self.at("print", "lane") - self.at("print", "passed")
        return first + max(0.0, own, turns, passing)

    @property
    def port_cycles(self) -> tuple[float, float]:
        """The cycles of an SM's port to L2 for a line of a request, and for a stored sector."""
        return self.at("port", "line"), self.at("port", "sector")

    def block_ns(self, mhz: float) -> float:
        """Return the time that one more block adds to an empty kernel."""
        more = self._between("blocks", 4096, mhz) - self._between("empty", 32, mhz)
        return more / 4096

    def _between(self, name: str, place: int, mhz: float) -> float:
        """Interpolate a time between two measured clocks: a part in cycles, and a constant part."""
        slow, fast = (
            self.values.get(("profiler", f"{name}_{clock}", place), 0.0)
            for clock in ("base", "none")
        )
        if not fast:
            return slow
        cycles, residual = _split(slow, fast, self.profiler_mhz, self._mhz)
        return cycles / mhz * 1000 + residual

    @property
    def l1_cycles(self) -> float:
        """The latency of an L1 hit, with the address ready."""
        small, large = self.at("chase", "chase_ca", 2048), self.at("chase", "chase_ca", 16384)
        first_time = (large - small) / 7  # 2048 hops find 16 lines missing, or 128
        return small - first_time - 2 * self.at("latency", "mad.lo.s32")

    def l2_cycles(self, mhz: float) -> float:
        """Return the latency of an L2 hit: the way to L2 is in cycles of the SMs, the rest at L2's
        clock.
        """
        return self._far(self.at("chase", "chase_cg", 1 << 20), mhz)

    def dram_cycles(self, mhz: float) -> float:
        """Return the latency of a load from memory."""
        return self._far(self.at("chase", "chase_cg_far", 1 << 30), mhz, is_memory=True)

    def _far(self, cycles: float, mhz: float, is_memory: bool = False) -> float:
        own = cycles - 2 * self.at("latency", "mad.lo.s32")
        if ("profiler", "dram_step_none", 256) not in self.values:
            return own * mhz / self._mhz if is_memory else own
        slow, fast = (self.at("profiler", f"dram_step_{c}", 256) / 256 for c in ("base", "none"))
        step, _ = _split(slow, fast, self.profiler_mhz, self._mhz)
        near = min(own, step - 10 * self.at("latency", "mad.lo.s32"))
        return near + (own - near) * mhz / self._mhz

    def gb_per_s(self, name: str, place: int = 0) -> float:
        """Return a bandwidth."""
        return self.at("bytes", name, place) * self.at("clock", "sm") / 1000

    def dram_gb_per_s(self) -> float:
        """The peak bandwidth of memory."""
        return self.gb_per_s("read_dram_4", 65536)

    def copy_gb_per_s(self) -> float:
        """Return the same where as many bytes are written as read."""
        return self.gb_per_s("copy_dram")

    @property
    def branch_cycles(self) -> float:
        """The latency of a predicated branch: a loop that only counts, without its counting."""
        counting = self.at("latency", "mad.lo.s32") + self.at("latency", "setp+selp") / 2
        return self.at("loop", "count") - counting

    @property
    def taken_cycles(self) -> float:
        """The additional latency of a taken branch: a loop that counts, without the 24 cycles of
        stalls in its machine code (UIADD3 1, FFMA 5, ISETP 13, BRA 5).
        """
        return self.at("loop", "count") - 24

    @property
    def request_cycles(self) -> float:
        """The cycles of an SM that a warp's load or store takes at least."""
        return self.values.get(("lsu", "request", 0), 1.0)

    @property
    def pass_cycles(self) -> float:
        """The cycles of L1 that 128 bytes take."""
        return self.values.get(("lsu", "pass", 0), 1.0)

    @property
    def replay_cycles(self) -> float:
        """The cost of a further address of a load of constants."""
        return self.at("constant", "load", 32) / 32

    @property
    def texture_cycles(self) -> float:
        """The latency of a fetch of a cached texel."""
        return self.at("texture", "chain")

    @property
    def turn_ns(self) -> float:
        """The time of an operation at an L2 slice, which has its own clock."""
        return self.at("atomics", "red_u32_lane", 1) * self._cycle_ns

    @property
    def atomic_sector_ns(self) -> float:
        """The time of a sector's operation where all slices are busy."""
        return self.at("atomics", "red_u32_random", 1 << 20) / 32 * self._cycle_ns

    @property
    def compared_turns(self) -> float:
        """The turns of an atomic that compares, of words in any order."""
        add, compare = (
            self.at("atomics", f"{name}_u32_random", 1 << 16) for name in ("red", "cas")
        )
        return compare / add

    def tries(self, rivals: float) -> float:
        """Return the attempts of each of so many lanes until all have exchanged one word."""
        return self._between_sizes("retries", "lanes", rivals)

    def sector_ns(self, name: str) -> float:
        """Return the time of a sector of L2 in random order: `gather`, or `scatter`: stored in
        part.
        """
        return self._cycle_ns / self.at("sectors", name, 1 << 18)

    def far_sector_ns(self, name: str) -> float:
        """Return the time of a sector of memory in random order, as `sector_ns`."""
        return self._cycle_ns / self.at("sectors", name, 1 << 23)

    @property
    def _cycle_ns(self) -> float:
        """The cycle time of the SMs during these measurements."""
        return 1000 / self.at("contention", "mhz")

    def bulk_load_cycles(self, size: float, mhz: float) -> tuple[float, float]:
        """Return the cycles until a bulk copy begins to arrive from L2, and from memory."""
        near, far = (self._between_sizes("bulk", name, size) for name in ("near", "far"))
        base = self.at("bulk", "near", 16) + self.l2_cycles(mhz) - self.l2_cycles(self._mhz)
        return base, base + max(0.0, far - near) * mhz / self._mhz

    def bulk_store_cycles(self, size: float) -> tuple[float, float]:
        """Return the cycles of a bulk store of so many bytes, and of its reads alone."""
        return (
            self._between_sizes("stores", "done", size),
            self._between_sizes("stores", "read", size),
        )

    def host_ns(self, name: str) -> float:
        """Return a time of the way to the host's memory: of a line, a sector, or the latency."""
        return self.at("host", name)

    @property
    def bulk_bytes(self) -> float:
        """The bytes that bulk copies of an SM bring in a cycle."""
        return self.at("stream", "near", 4016)

    @property
    def hand_over_cycles(self) -> float:
        """The cycles from a warp's arrival at an mbarrier to the end of another's wait."""
        return self.at("mbarrier", "hand_over")

    def product_cycles(self, columns: int) -> float:
        """Return the cycles of the tensor pipe of a warpgroup's product of so many columns."""
        return self._between_sizes("wgmma", "f16_f32_row", columns)

    @lru_cache(maxsize=256)  # noqa: B019
    def tensor_cycles(self, mnemonic: str) -> float:
        """Return the cycles of the tensor pipe that a warp's matrix instruction takes; 0: none."""
        if found := PRODUCT.match(mnemonic):
            return self.product_cycles(int(found[1])) / WARPS_OF_A_GROUP
        found = MATRIX.match(mnemonic)
        if not found:
            return 0.0
        rows, columns, depth = (int(found[each]) for each in "mnk")
        types = TYPES.findall(found["types"])
        factor = types[1] if len(types) > 2 else "f16"  # wmma of halves names accumulators alone
        bits, sums = BITS.get(factor, 16), types[0] if types else "f16"
        base = self.at("mma", f"f16_{'f32' if sums == 'f32' else 'f16'}_16816_rate", 16)
        own = self.values.get(("mma", f"{factor}_{sums}_{rows}{columns}{depth}_rate", 16))
        return own or base * rows * columns * depth * bits / (16 * 8 * 16 * 16)

    def product_of_warp(self, mnemonic: str) -> float:
        """Return the same of a product that one warp computes."""
        return 0.0 if PRODUCT.match(mnemonic) else self.tensor_cycles(mnemonic)

    @property
    def product_latency(self) -> float:
        """The cycles from the end of a warpgroup's product on the tensor pipe to its wait's."""
        return self.at("wgmma", "f16_f32_one", 256) - self.product_cycles(256)

    def _between_sizes(self, what: str, name: str, size: float) -> float:
        """Interpolate a result between the sizes that were measured, and go on beyond them."""
        known = self._sizes(what, name)
        place = min(max(bisect(known, (size,)), 1), len(known) - 1)
        (low, first), (high, last) = known[place - 1 : place + 1]
        return first + (max(size, known[0][0]) - low) / (high - low) * (last - first)

    @lru_cache(maxsize=64)  # noqa: B019
    def _sizes(self, what: str, name: str) -> Sequence[tuple[int, float]]:
        return sorted(
            (at, value) for (w, n, at), value in self.values.items() if (w, n) == (what, name)
        )

    def l2_gb_per_s(self) -> float:
        """The peak bandwidth of L2."""
        return self.gb_per_s("read_l2_4", 131072)

    def barrier(self, warps: int) -> float:
        """Return the cycles of a barrier of `warps` warps."""
        one, most = self.at("barrier", "bar.sync", 1), self.at("barrier", "bar.sync", 32)
        return one + (most - one) / 31 * (warps - 1)


def _like(mnemonic: str) -> str:
    return next((name for start, name in LIKE.items() if mnemonic.startswith(start)), "")


def _split(slow: float, fast: float, slow_mhz: float, fast_mhz: float) -> tuple[float, float]:
    """Split times at two clocks into cycles and constant nanoseconds.

    >>> _split(120.0, 115.0, 1000.0, 1333.3333333333333)
    (20.0, 100.0)
    """
    cycles = (slow - fast) / (1000 / slow_mhz - 1000 / fast_mhz)
    return round(cycles, 9), round(slow - cycles / slow_mhz * 1000, 9)


def load_measured(device: Device) -> Measured | None:
    """Return the measurements of a device, or of its capability's chip; None if there are none."""
    major, minor = device.capability
    own = _measured(f"sm_{major}{minor}.csv", f"{device.path.stem}.csv")
    return own or _published(device.capability, device.chip, device.rates)


def load_interval(device: Device) -> tuple[float, float]:
    """Return the ends of measured over estimated times on a device."""
    measured = load_measured(device)
    return measured.interval if measured else WITHIN


@lru_cache
def has_latencies(capability: tuple[int, int]) -> bool:
    """Return whether the latencies of a capability were measured or published."""
    own = FOLDER / "measured" / "sm_{}{}.csv".format(*capability)
    return own.exists() or find_published(capability) is not None


@lru_cache
def _measured(chip: str, board: str) -> Measured | None:
    values = dict(_load(chip))
    if own := _load(board) if values else {}:
        chip_values = {key: value for key, value in values.items() if key[1] not in ONE_CLOCK}
        values = {**chip_values, **own}
    return Measured(values) if values else None


@lru_cache
def _published(capability: tuple[int, int], chip: Chip, rates: Rates) -> Measured | None:
    published = load_published(capability) if chip.clock_mhz else None
    if published is None:
        return None
    return Measured(adapt(_load("sm_90.csv"), published, chip, rates), published.interval)


@lru_cache
def _load(file: str) -> Mapping[Key, float]:
    path = FOLDER / "measured" / file
    if not path.exists():
        return {}
    with path.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    return {(r["what"], r["name"], int(r["at"])): float(r["value"]) for r in rows}


MEASURED_ON = 132, {"half": 256.0, "single": 128.0, "double": 64.0, "special": 16.0}
"""SMs of the chip that was measured, and its lanes in a cycle of an SM."""
RATE_OF = {
    "single": ("add.f32", "mul.f32", "fma.rn.f32"),
    "half": ("fma.rn.f16x2",),
    "double": ("add.f64", "mul.f64", "fma.rn.f64", "div.rn.f64", "sqrt.rn.f64", "rcp.rn.f64"),
}
"""Measured instructions by the rate of the unit that executes them."""


@dataclass(frozen=True, slots=True)
class Published:
    """What is known of a capability's chips. Latencies of L1, L2 and shared memory are in cycles.

    `lsu_lanes` are the lanes of a load or store that an SM accepts in a cycle, `l1_bytes` and
    `l2_bytes` the bytes of that level in a cycle of an SM. `dram_share` is the part of its peak
    that a board's memory reaches, `copy_share` the same where as many bytes are written as read
    (None: as for reads), `integer` the lanes of integer products and `double_cycles` the latency of
    double precision. `interval` are the least and the most of measured over estimated times: four
    of five launches lie between.
    """

    l1_cycles: float
    l2_cycles: float
    dram_ns: float
    shared_cycles: float
    double_cycles: float
    lsu_lanes: float
    l1_bytes: float
    l2_bytes: float
    dram_share: float
    integer: float
    interval: tuple[float, float]
    copy_share: float | None = None


def find_published(capability: tuple[int, int]) -> Path | None:
    """Return the file of a capability, or of the newest before it in its family, if any."""
    major, minor = capability
    known = {int(path.stem[3:]): path for path in (FOLDER / "measured").glob("sm_*.toml")}
    up_to = [number for number in known if 10 * major <= number <= 10 * major + minor]
    return known[max(up_to)] if up_to else None


def load_published(capability: tuple[int, int]) -> Published | None:
    """Return what is published of a capability; None if nothing is."""
    path = find_published(capability)
    if path is None:
        return None
    values = read_toml(path.read_bytes(), path.name)
    names = {each.name for each in fields(Published)}
    if missing := names ^ {*values, "copy_share"}:
        raise CutraceError(f"{path.name}: missing or unknown: {', '.join(sorted(missing))}")
    low, high = values.pop("interval")
    return Published(**values, interval=(low, high))


def adapt(
    measured: Mapping[Key, float], published: Published, chip: Chip, rates: Rates
) -> Mapping[Key, float]:
    """Return the measurements of 9.0 as those of a device with published latencies."""
    sms, lanes = MEASURED_ON
    values = {key: value for key, value in measured.items() if key[0] != "profiler"}
    for name, mnemonics in RATE_OF.items():
        slower = lanes[name] / getattr(rates, name)
        for mnemonic in mnemonics:
            values["rate", mnemonic, 0] *= slower
    values["rate", "mad.lo.s32", 0] *= 64.0 / published.integer
    for mnemonic in ("add.f64", "mul.f64", "fma.rn.f64"):
        values["latency", mnemonic, 0] = published.double_cycles
    if rates.tensor:
        for what, name, place in [key for key in values if key[0] == "mma"]:
            if found := RATE_OF_PRODUCT.fullmatch(name):
                bits, products = BITS.get(found["factor"], 16), 16 * 8 * int(found["depth"])
                rate = rates.tensor if found["sums"] == "f32" else rates.tensor_half
                values[what, name, place] = products * bits / 16 / rate
    product = 2 * values["latency", "mad.lo.s32", 0]
    small, large = (values["chase", "chase_ca", size] for size in (2048, 16384))
    moved = published.l1_cycles + product + (large - small) / 7 - small
    values["chase", "chase_ca", 2048] += moved
    values["chase", "chase_ca", 16384] += moved
    values["chase", "chase_cg", 1 << 20] = published.l2_cycles + product
    values["lsu", "request", 0] = 32 / published.lsu_lanes
    values["lsu", "pass", 0] = 128 / published.l1_bytes
    mhz = float(chip.clock_mhz)
    values["chase", "chase_cg_far", 1 << 30] = published.dram_ns * mhz / 1000 + product
    values["chase", "chase_shared", 0] = published.shared_cycles
    values["clock", "sm", 0] = values["contention", "mhz", 0] = mhz
    l2, dram = published.l2_bytes * chip.sms, published.dram_share * chip.memory_gb_per_s
    dram_of_copies = (published.copy_share or published.dram_share) * chip.memory_gb_per_s
    before = values["bytes", "read_l2_4", 131072], values["bytes", "read_dram_4", 65536]
    after = l2, dram * 1000 / mhz
    values["bytes", "read_l2_4", 131072], values["bytes", "read_dram_4", 65536] = after
    values["bytes", "copy_dram", 0] = dram_of_copies * 1000 / mhz
    for place, level in ((1 << 18, 0), (1 << 23, 1)):
        for name in ("gather", "scatter", "scatter_turn"):
            values["sectors", name, place] *= after[level] / before[level]
    values["atomics", "red_u32_random", 1 << 20] *= sms / chip.sms
    values["profiler", "mhz_none", 0] = values["profiler", "mhz_base", 0] = mhz
    for name, place in (("empty_base", 32), ("blocks_base", 4096), ("prints_base", 0)):
        values["profiler", name, place] = measured["profiler", name, place]
    return values

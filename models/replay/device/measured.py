"""Measured: the latencies, rates and bandwidths of a chip, as `scripts/measure/latencies.py` wrote.

`models/devices/measured/sm_NN.csv` holds the raw results of one chip of a compute capability; its
columns are those of that script, which says what each line is; `contention.py` beside it wrote the
others. A device of its own name there (`h100.csv`) has other results, and the rest of its
capability's; what launching takes was measured there at the profiler's clock alone. A capability
without a file has bounds and no estimate.
"""

import csv
from collections.abc import Mapping
from functools import lru_cache

from ....base.dataclass import dataclass
from .catalog import FOLDER
from .device import Device

Key = tuple[str, str, int]
ONE_CLOCK = ("empty_none", "blocks_none")
"""What a device of its own was not measured for."""
OF_A_CLASS = {
    "half": "fma.rn.f16x2",
    "single": "fma.rn.f32",
    "double": "fma.rn.f64",
    "integer": "mad.lo.s32",
    "other": "mad.lo.s32",
}
"""The instruction whose figures stand for those of a class that were not measured."""
LIKE = {
    **{"rem.s32": "div.s32", "div.u32": "rem.u32", "div.s64": "div.u64"},
    **{"rem.u64": "div.u64", "rem.s64": "div.u64", "div.full": "rcp.approx.f32"},
    **{"div.approx": "rcp.approx.f32", "cos.approx": "sin.approx.f32"},
    **{"popc": "rsqrt.approx.f32", "clz": "rsqrt.approx.f32", "add.rn.f64": "add.f64"},
}
"""Instructions that the assembler makes of the same parts as another that was measured."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of a chip. Latencies are in cycles, `rate` in cycles of an SM."""

    values: Mapping[Key, float]

    def at(self, what: str, name: str, place: int = 0) -> float:
        """One line of the file."""
        return self.values[what, name, place]

    def costs(self, mnemonic: str, class_: str) -> tuple[float, float]:
        """Latency and rate of an arithmetic instruction: its own, or those of one like it."""
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
        """The clock of the SMs that the profiler sets by default."""
        return self.at("profiler", "mhz_base")

    def launch_ns(self, mhz: float) -> float:
        """The time of an empty kernel."""
        return self._between("empty", 32, mhz)

    @property
    def l2_of_launch_ns(self) -> float | None:
        """How long the second level looks up for an empty kernel; None where nobody measured."""
        return self.values.get(("profiler", "empty_l2_base", 32))

    @property
    def print_ns(self) -> float:
        """The additional time of a launch that prints: the host reads its output."""
        return self.at("profiler", "prints_base") - self.at("profiler", "empty_base", 32)

    def block_ns(self, mhz: float) -> float:
        """The time that one more block of an empty kernel adds."""
        more = self._between("blocks", 4096, mhz) - self._between("empty", 32, mhz)
        return more / 4096

    def _between(self, name: str, place: int, mhz: float) -> float:
        """A time at a clock between the two at which it was measured: cycles, and the rest."""
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
        """A load that the first level has, the address ready."""
        small, large = self.at("chase", "chase_ca", 2048), self.at("chase", "chase_ca", 16384)
        first_time = (large - small) / 7  # 2048 hops find 16 lines missing, or 128
        return small - first_time - 2 * self.at("latency", "mad.lo.s32")

    def l2_cycles(self, mhz: float) -> float:
        """A load that the second level has: the way there has the SMs' clock, the rest its own."""
        return self._far(self.at("chase", "chase_cg", 1 << 20), mhz)

    def dram_cycles(self, mhz: float) -> float:
        """A load that memory has."""
        return self._far(self.at("chase", "chase_cg_far", 1 << 30), mhz)

    def _far(self, cycles: float, mhz: float) -> float:
        own = cycles - 2 * self.at("latency", "mad.lo.s32")
        slow, fast = (self.at("profiler", f"dram_step_{c}", 256) / 256 for c in ("base", "none"))
        step, _ = _split(slow, fast, self.profiler_mhz, self._mhz)
        near = min(own, step - 10 * self.at("latency", "mad.lo.s32"))
        return near + (own - near) * mhz / self._mhz

    def gb_per_s(self, name: str, place: int = 0) -> float:
        """A bandwidth."""
        return self.at("bytes", name, place) * self.at("clock", "sm") / 1000

    def dram_gb_per_s(self) -> float:
        """The peak bandwidth of memory."""
        return self.gb_per_s("read_dram_4", 65536)

    @property
    def branch_cycles(self) -> float:
        """A branch by a predicate: a loop that counts and does nothing, without its counting."""
        counting = self.at("latency", "mad.lo.s32") + self.at("latency", "setp+selp") / 2
        return self.at("loop", "count") - counting

    @property
    def taken_cycles(self) -> float:
        """What a branch adds that is taken: a loop that counts, without the 24 cycles that its
        machine code waits (UIADD3 1, FFMA 5, ISETP 13, BRA 5).
        """
        return self.at("loop", "count") - 24

    @property
    def replay_cycles(self) -> float:
        """A further address of a load of constants."""
        return self.at("constant", "load", 32) / 32

    @property
    def texture_cycles(self) -> float:
        """A fetch of a texel that the cache has."""
        return self.at("texture", "chain")

    @property
    def turn_ns(self) -> float:
        """A turn at a slice of the second level, whose clock is its own."""
        return self.at("atomics", "red_u32_lane", 1) * self._cycle_ns

    @property
    def atomic_sector_ns(self) -> float:
        """A sector's turn where all slices have some."""
        return self.at("atomics", "red_u32_random", 1 << 20) / 32 * self._cycle_ns

    def sector_ns(self, name: str) -> float:
        """A sector of the second level in any order: `gather`, or `scatter`: stored in part."""
        return self._cycle_ns / self.at("sectors", name, 1 << 18)

    def far_sector_ns(self, name: str) -> float:
        """The same of memory."""
        return self._cycle_ns / self.at("sectors", name, 1 << 23)

    @property
    def _cycle_ns(self) -> float:
        """A cycle of the SMs while those were measured."""
        return 1000 / self.at("contention", "mhz")

    def l2_gb_per_s(self) -> float:
        """The peak bandwidth of L2."""
        return self.gb_per_s("read_l2_4", 131072)

    def barrier(self, warps: int) -> float:
        """A barrier of `warps` warps, in cycles."""
        one, most = self.at("barrier", "bar.sync", 1), self.at("barrier", "bar.sync", 32)
        return one + (most - one) / 31 * (warps - 1)


def _like(mnemonic: str) -> str:
    return next((name for start, name in LIKE.items() if mnemonic.startswith(start)), "")


def _split(slow: float, fast: float, slow_mhz: float, fast_mhz: float) -> tuple[float, float]:
    """Times at two clocks as cycles and nanoseconds that no clock changes.

    >>> _split(120.0, 115.0, 1000.0, 1333.3333333333333)
    (20.0, 100.0)
    """
    cycles = (slow - fast) / (1000 / slow_mhz - 1000 / fast_mhz)
    return round(cycles, 9), round(slow - cycles / slow_mhz * 1000, 9)


def load_measured(device: Device) -> Measured | None:
    """Return what was measured on a device or its capability's chip; None if nothing was."""
    major, minor = device.capability
    return _measured(f"sm_{major}{minor}.csv", f"{device.path.stem}.csv")


@lru_cache
def _measured(chip: str, board: str) -> Measured | None:
    values = dict(_load(chip))
    if own := _load(board) if values else {}:
        chip_values = {key: value for key, value in values.items() if key[1] not in ONE_CLOCK}
        values = {**chip_values, **own}
    return Measured(values) if values else None


@lru_cache
def _load(file: str) -> Mapping[Key, float]:
    path = FOLDER / "measured" / file
    if not path.exists():
        return {}
    with path.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    return {(r["what"], r["name"], int(r["at"])): float(r["value"]) for r in rows}

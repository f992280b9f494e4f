"""Published: the latencies and bandwidths of chips that nobody here could measure.

`models/devices/measured/sm_NN.toml` has what others measured on chips of a capability, with its
source. Everything else is taken from the chip of 9.0 that was measured (sm_90.csv), with the
device's own clock and bandwidths, and with the rates of its arithmetic units.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from ....base.config import read_toml
from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ..schedule.place import Chip
from .catalog import FOLDER
from .device import Rates

Key = tuple[str, str, int]
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
    that a board's memory reaches, `integer` the lanes of integer products and `double_cycles` the
    latency of double precision. `interval` are the least and the most of measured over estimated
    times: four of five launches lie between.
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
    if missing := {each.name for each in fields(Published)} ^ values.keys():
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
    before = values["bytes", "read_l2_4", 131072], values["bytes", "read_dram_4", 65536]
    after = l2, dram * 1000 / mhz
    values["bytes", "read_l2_4", 131072], values["bytes", "read_dram_4", 65536] = after
    for place, level in ((1 << 18, 0), (1 << 23, 1)):
        for name in ("gather", "scatter", "scatter_turn"):
            values["sectors", name, place] *= after[level] / before[level]
    values["atomics", "red_u32_random", 1 << 20] *= sms / chip.sms
    values["profiler", "mhz_none", 0] = values["profiler", "mhz_base", 0] = mhz
    for name, place in (("empty_base", 32), ("blocks_base", 4096), ("prints_base", 0)):
        values["profiler", name, place] = measured["profiler", name, place]
    return values

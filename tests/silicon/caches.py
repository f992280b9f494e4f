"""How near the models of caches come to a chip, and why not nearer.

Caches follow the order of warps, which on the chip follows time: they are held to be near, not
equal. What is compared are launches whose accesses to global and local memory are, instruction by
instruction, those that cutrace ran.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from silicon.launches import GLOBAL, Launched

HIT_RATE = "l1tex__t_sector_hit_rate.pct"
ALL = (*GLOBAL, "local load", "local store")


@dataclass(frozen=True, slots=True)
class Nearness:
    """What is near: so many percent of what the chip counted, or so much in the counter's unit.

    Less than `least` on both sides is not looked at.
    """

    words: str
    least: int
    part: float
    more: float


MEGABYTE = "15 %, of more than 1 MB"
NEAR = {
    HIT_RATE: Nearness("5 points", 1, 0, 5),
    "lts__t_sectors_srcunit_tex_op_read.sum": Nearness(MEGABYTE, 1 << 15, 0.15, 0),
    "dram__bytes_read.sum": Nearness(MEGABYTE, 1 << 20, 0.15, 0),
    "dram__bytes_write.sum": Nearness(MEGABYTE, 1 << 20, 0.15, 0),
}

PASSES = "the profiler repeats the launch, and local memory stays in L1 between repetitions"
TIMING = "several warps access the same lines, in an order that depends on timing"
ON_THE_WAY = (
    "a store misses a line while an earlier store to it is in flight, which depends on timing"
)
SHARED_SM = "cutrace does not know which blocks share an SM and which SMs request a sector together"
REASONS = (
    (r"local.cu one_u(8|16|32)", HIT_RATE, PASSES),
    (
        r"local.cu (one_block|lines)_twice",
        HIT_RATE,
        "the launch reads about as much as L1 holds; which lines stay is not known",
    ),
    (r"local_array.cu|everyday.cu (scale_48|wide_structs) ", HIT_RATE, ON_THE_WAY),
    (r"unseen.cu to_structures", HIT_RATE, ON_THE_WAY),
    (r"fresh.cu small_products|fresh_tensor.cu staged", HIT_RATE, ON_THE_WAY),
    (r"fresh2_types.cu (drift|invert_4)", HIT_RATE, ON_THE_WAY),
    (r"fresh2.cu split_by_bit", HIT_RATE, TIMING),
    (r"ways.cu (.*_or_else|jump_past_the_tail|two_or_the_third)", HIT_RATE, ON_THE_WAY),
    (r"(lines.cu store_|kernels.cu transpose|transpose_naive.cu)", HIT_RATE, ON_THE_WAY),
    (r"(by_warp|ways_by_warp|occupancy|global).cu|lines.cu shift", HIT_RATE, TIMING),
    (r"kernels.cu product ", "op_read", SHARED_SM),
    (
        r"kernels.cu structures",
        "op_read",
        "on the chip consecutive volatile loads of one sector are one read of L2",
    ),
    (
        r"level2.cu far",
        "bytes_write",
        "the chip also writes older data to DRAM, or stored lines before the launch ends",
    ),
    (
        r"level2.cu fill_(sectors|words)",
        "bytes_write",
        "how many partly stored lines stay dirty in L2 is known only roughly",
    ),
)
"""Regular expressions for `source kernel ` and for the metric, and why they are not near."""


@dataclass(frozen=True, slots=True)
class Cached:
    """One counter of one launch."""

    launched: Launched
    metric: str
    theirs: float
    ours: float

    @property
    def is_near(self) -> bool:
        """Whether ours is near enough."""
        near = NEAR[self.metric]
        return abs(self.theirs - self.ours) <= near.part * self.theirs + near.more

    @property
    def reason(self) -> str:
        """Why it is not near; empty if nobody knows."""
        name = f"{self.launched.source} {self.launched.kernel} "
        found = (
            why
            for kernel, metric, why in REASONS
            if re.match(kernel, name) and re.search(metric, self.metric)
        )
        return next(found, "")


def compare(launches: Sequence[Launched]) -> Iterator[Cached]:
    """Compare what can be, and is not nothing on both sides."""
    for launch in launches:
        if all(launch.agrees(name) for name in ALL):
            for metric, near in NEAR.items():
                theirs, ours = launch.counted.get(metric) or 0, launch.ours.counters[metric] or 0
                if max(theirs, ours) >= near.least:
                    yield Cached(launch, metric, theirs, ours)


def by_kernel(compared: Sequence[Cached]) -> dict[tuple[str, str], bool]:
    """Whether most launches of each kernel are near."""
    found: dict[tuple[str, str], list[bool]] = {}
    for one in compared:
        found.setdefault((one.launched.source, one.launched.kernel), []).append(one.is_near)
    return {kernel: 2 * sum(near) > len(near) for kernel, near in found.items()}

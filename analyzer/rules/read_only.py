"""Read-only loads: arrays that the kernel does not write, without `const __restrict__`.

The change is tried: the launch is replayed with these loads read-only. On 3.5 to 5.x, whose texture
cache serves read-only loads alone, it saves L2 traffic. Where latencies were measured, the estimate
gives the gain of issuing a read-only load before a store through another pointer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial

import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.measured import load_measured
from ...traces.reader import LaunchTrace
from ..counting.atomic_contention import count_contention
from ..counting.bounds import time_text
from ..evidence.evidence import Evidence, Finding
from ..time.estimate import EstimateInput, estimate, sums_of_one
from ..time.sample_warps import sample_warps
from ..why.search import Access

READ_ONLY = "nc"
REMAINING = 0.9
"""Largest part of the time that read-only loads may leave."""
CHANGE = (
    "declare {} as `const` and every pointer as `__restrict__`: the compiler then loads by the"
    " read-only path, and before stores to other arrays"
)


@dataclass(frozen=True)
class ReadOnlyLaunch(LaunchTrace):
    """A launch with read-only loads at some `pcs`."""

    pcs: tuple[int, ...] = field(kw_only=True)

    def instructions(self) -> pa.Table:
        """Return all instructions, with the cache operator of read-only loads at `pcs`."""
        table = self._instructions
        caches = [
            READ_ONLY if row["pc"] in self.pcs else row["cache"]
            for row in table.select(["pc", "cache"]).to_pylist()
        ]
        place = table.schema.get_field_index("cache")
        return table.set_column(place, table.schema.field(place), pa.array(caches, pa.string()))


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check plain loads of arrays that the launch does not write."""
    loads = [access for access in evidence.worst if _may_be_read_only(evidence, access)]
    if not loads or evidence.trace.what_if or not evidence.profile.bounds:
        return
    pcs = tuple(sorted(access.pc for access in loads))
    supposed = (f"what-if: the loads at {', '.join(map(str, pcs))} are read-only",)
    own = evidence.trace
    launch = ReadOnlyLaunch(own.number, own.launch, own.folder, own.stamps, supposed, pcs=pcs)
    least, estimate, proof = _least(evidence, launch)
    if not proof:
        return
    names = sorted({f"`{evidence.array_of(access)}`" for access in loads})
    for access in loads:
        yield Finding(
            "loads of data that the launch does not write are not read-only loads",
            f"the compiler cannot know that stores do not overlap {', '.join(names)}",
            CHANGE.format(", ".join(names)),
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            proof,
            least=least,
            estimate=estimate,
            effort=0,
        )


def _may_be_read_only(evidence: Evidence, access: Access) -> bool:
    kind = access.kind
    if (kind.space, kind.access) != ("global", "load") or kind.cache == READ_ONLY:
        return False
    name = evidence.array_of(access)
    return bool(name) and not evidence.is_written(name)


def _least(evidence: Evidence, launch: ReadOnlyLaunch) -> tuple[float, float | None, str]:
    """Return the longest bound and the estimate with the change, and the trial; empty if it helps
    little.
    """
    before = evidence.profile.bounds[0].ns
    if _has_own_path(evidence):
        least, estimate = evidence.replay(launch)
        text = f"read-only, they need {time_text(least)} at least instead of {time_text(before)}"
        return (least, estimate, text) if least <= REMAINING * before else (before, None, "")
    now = evidence.profile.estimate
    if not now or not evidence.total("global_store_requests"):
        return before, None, ""
    then = now.ns * _estimated(evidence, launch) / _estimated(evidence, evidence.trace)
    text = f"estimated with read-only loads: {time_text(then)} instead of {time_text(now.ns)}"
    return before, then, text if then <= REMAINING * now.ns else ""


def _has_own_path(evidence: Evidence) -> bool:
    """Return whether a first-level cache serves read-only global loads and no others."""
    for stage in evidence.device.stages:
        serves, operators = (stage.keys.get(key) for key in ("serves", "operators"))
        if isinstance(serves, Sequence) and "global" in serves and operators == [READ_ONLY]:
            return True
    return False


def _estimated(evidence: Evidence, launch: LaunchTrace) -> float:
    """Return the estimate of a launch in nanoseconds, in PTX: its new loads were not assembled."""
    profile, now = evidence.profile, evidence.profile.estimate
    measured = load_measured(evidence.device)
    assert now
    assert measured
    resources = tuple(replace(each, schedule="") for each in launch.launch.resources)
    query = EstimateInput(
        sums_of_one(profile.raw.counts),
        launch.instructions(),
        profile.bounds,
        replace(launch.launch, resources=resources),
        int(profile.raw.facts.get("resident_blocks") or 1),
        evidence.device,
        now.mhz,
        partial(count_contention, launch),
    )
    return estimate(query, sample_warps(launch), measured).ns

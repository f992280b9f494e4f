"""Cache thrashing: lines are evicted before they are used again.

Reported if the traffic behind the cache limits the launch: L2 for L1, DRAM for L2. One replay
measures the hits of caches of all sizes (`reuse/reuse.py`). If L1 and shared memory share their
capacity, a larger L1 is tried. Scattered lanes belong to the rule `uncoalesced`.

No padding is advised: chips hash line numbers, so no stride maps to only a few sets
(docs/models.md).
"""

from collections.abc import Iterator, Sequence

from ...models.replay.device.wiring import Stage
from ..evidence.evidence import Evidence, Finding, find_gain
from ..reuse.reuse import CacheReuse, measure, number, why_not
from ..why.search import Access

NEXT_LEVEL = {"L2": "sm", "DRAM": "gpu"}
"""Limit of a launch to the scope of the cache in front of it."""
LOST, PART, APART = 0.3, 0.1, 2
"""Least part of misses on lines that were evicted before reuse, least part of the misses at an
instruction, and the factor over the ideal cost from which lanes count as scattered.
"""
FETCHED = 1.25
"""Fetches per byte of all arrays from which a cache may have lost lines."""
WORTH, TRIED, MOST = 0.05, 0.95, 0.9
"""Least gain as a part of the least time, most of the least time that a larger L1 may leave, and
the part of all possible hits that is enough.
"""
CONFIG = "prefer_l1"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the cache in front of the limit."""
    limit = evidence.profile.limited_by
    stage = _cache(evidence, NEXT_LEVEL.get(limit, ""))
    if not stage or why_not(evidence.trace.launch, evidence.device, evidence.options):
        return
    counter = f"global_load_{stage.name}_reads"
    loads = [
        a
        for a in evidence.worst
        if (a.kind.space, a.kind.access) == ("global", "load") and a.cost < APART * a.ideal
    ]
    missed = {a.pc: evidence.of(a.pc, counter) - evidence.of(a.pc, _hits(counter)) for a in loads}
    every = evidence.total(counter) - evidence.total(_hits(counter))
    mine = [access for access in loads if missed[access.pc] >= PART * every > 0]
    array_bytes = sum(array.bytes for array in evidence.trials.arrays.values())
    size = number(stage, "sector")
    # These checks need only counters; `measure` replays the trace, so it comes last.
    if not mine or every * size < FETCHED * array_bytes:
        return
    for cache_reuse in measure(evidence.trace, evidence.device, evidence.options, stage.name):
        yield from _findings(evidence, cache_reuse, mine, limit)


def _hits(counter: str) -> str:
    return f"{counter.removesuffix('s')}_hits"


def _cache(evidence: Evidence, scope: str) -> Stage | None:
    """Return the last cache of a scope that serves global loads."""
    stages = [
        stage
        for stage in evidence.device.stages
        if stage.model == "cache" and stage.scope == scope and "global" in _serves(stage)
    ]
    return stages[-1] if stages else None


def _serves(stage: Stage) -> Sequence[str]:
    serves = stage.keys.get("serves")
    return serves if isinstance(serves, Sequence) else ()


def _findings(
    evidence: Evidence, cache_reuse: CacheReuse, loads: Sequence[Access], limit: str
) -> Iterator[Finding]:
    """Yield the findings on a cache that evicts lines too early, with a change."""
    misses = next(
        p.misses
        for p in cache_reuse.points
        if p.bytes == cache_reuse.own // cache_reuse.line * cache_reuse.line
    )
    lost = misses - cache_reuse.cold
    if lost < LOST * misses:
        return
    name, least, estimate, effort = cache_reuse.cache.upper(), None, None, 2
    change = (
        "finish all work on a part of the data before the next: loops over smaller tiles, or fewer"
        " warps at a time"
    )
    proof = (
        f"a cache of {cache_reuse.room_for(MOST):,} bytes would have {100 * MOST:.0f} % of"
        " the hits of a"
        " cache of unlimited size"
    )
    if limit == "L2" and (tried := _with_more(evidence)):
        (least, estimate), effort = tried, 0
        change = f"give L1 more room: {CONFIG} (cudaFuncSetCacheConfig, or the carveout)"
        less = 1 - least / evidence.profile.bounds[0].ns
        proof = f"--cache-config {CONFIG}: the least time falls by {100 * less:.0f} %"
    saved = lost / misses
    gain = find_gain(evidence, [(access.pc, saved) for access in loads], (limit,))
    if least is None and gain < WORTH * evidence.profile.bounds[0].ns:
        return
    where = " on each SM" if limit == "L2" else ""
    for access in loads:
        yield Finding(
            f"{name} loses data before their next use: {lost:,} of {misses:,} sectors that loads"
            " miss were there before",
            f"{cache_reuse.own:,} bytes{where}, and {cache_reuse.working_set:,} are used in all",
            change,
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            proof,
            saved=saved,
            only=(limit,),
            least=least,
            estimate=estimate,
            effort=effort,
        )


def _with_more(evidence: Evidence) -> tuple[float, float | None] | None:
    """Return the longest bound and the estimate with the largest L1; None if that does not help."""
    if evidence.options.cache_config or not any(s.beside_shared for s in evidence.device.stages):
        return None
    least, estimate = evidence.replay(evidence.trace, cache_config=CONFIG)
    return (least, estimate) if least <= TRIED * evidence.profile.bounds[0].ns else None

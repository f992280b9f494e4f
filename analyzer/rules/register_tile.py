"""Register tiles: shared memory limits a launch whose threads load each shared word many times.

Each multiply-add of a tiled product takes two words from shared memory. A thread that computes
several results loads each word once for all of them, into registers. Bank conflicts are the matter
of another rule.
"""

from collections.abc import Iterator

from ..evidence.evidence import L1_PART, Evidence, Finding

TIMES = 8
"""Loads of each stored word by the block from which a register tile is advised."""
PART = 0.5
"""Least share of L1's cycles that shared memory takes, and of the loads that is saved: a tile of
2 x 2 results takes half of the loads."""
PER_RESULT = 1.5
"""Loads per arithmetic instruction of floating point from which values are not reused enough."""
ARITHMETIC = ("lanes_single", "lanes_double", "lanes_half")
LANES = 32


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the loads of shared memory where it limits."""
    loads = [a for a in evidence.worst if (a.kind.space, a.kind.access) == ("shared", "load")]
    stored = evidence.total("shared_store_requests") * LANES
    many = evidence.total("shared_load_requests")
    work = sum(evidence.total(name) for name in ARITHMETIC) / LANES
    if not loads or not stored or not work or not _is_limit(evidence):
        return
    passes, ideal = (evidence.total(f"shared_load_{name}") for name in ("passes", "ideal_passes"))
    times = many * LANES / stored
    if passes > 2 * ideal or times < TIMES or many < PER_RESULT * work:
        return
    for access in loads:
        yield Finding(
            f"shared memory limits: {many / work:.2g} loads for each floating-point instruction",
            f"threads load each word of the tile {times:.3g} times; {evidence.describe(access)}",
            "let each thread compute several results, 2 x 2 or more, from words that it keeps in"
            " registers: 2 x 2 take half of the loads",
            access.pc,
            evidence.share(access, "passes"),
            access.identifier,
            saved=PART,
            effort=2,
        )


def _is_limit(evidence: Evidence) -> bool:
    """Return whether shared memory is the longest bound, or the longest part of the estimate."""
    profile = evidence.profile
    if profile.limited_by == "shared memory":
        return True
    parts = profile.estimate.parts if profile.estimate else ()
    moved = evidence.total("global_load_bytes_moved") / 128
    return (
        any(part.what == L1_PART for part in parts[:1])
        and evidence.total("shared_load_passes") > moved
    )

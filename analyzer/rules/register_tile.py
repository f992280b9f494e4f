"""Register tiles: shared memory limits a launch whose threads load each shared word many times.

Each multiply-add of a tiled product takes two words from shared memory. A thread that computes
r x c results loads each word once for a row or column of them, into registers: (r + c) / (r * c)
words per multiply-add. Words are counted, not loads: the assembler merges loads of neighbouring
words, and a broadcast of 16 bytes is still four operands. An SM multiplies four warps in the cycle
in which it loads one word for each lane of a warp, so that a tile with one result a thread is
limited by shared memory. Bank conflicts are the matter of another rule.
"""

from collections.abc import Iterator

from ..evidence.evidence import L1_PART, LINE, Evidence, Finding

TIMES = 8
"""Loads of each stored word by the block from which a register tile is advised."""
PART = 0.5
"""Part of the loads that is saved by twice as many results both ways: 2 (r + c) / (4 r c)."""
ENOUGH = 0.5
"""Words per arithmetic instruction of 4 x 4 results: the limit is near that of the pipes."""
MOST = 4
"""Words per arithmetic instruction above which the loads are not its operands: those of matrix
instructions, or indices."""
SEVERAL = 1.5
"""Words per arithmetic instruction from which a thread computes one result: 2, or 1.5 of
1 x 2 results."""
OPERANDS = {"lanes_single": 4, "lanes_half": 4, "lanes_double": 8}
"""Bytes of an operand of each kind of arithmetic; halves are mostly in pairs."""
INTEGER, INTEGER_BYTES = "lanes_integer", 4
"""Counted where nothing is computed in floating point: a part of it computes addresses."""
WARPS = 8
"""Warps per SM, two for each of four schedulers, from which a bound is taken to be the limit."""
TOLERANCE = 0.1
"""Part by which loads outside of the product may exceed ENOUGH."""
SINGLE = (
    "let each thread compute several results, 2 x 2 or more, from words that it keeps in registers:"
    " 2 x 2 take half of the loads"
)
MORE = (
    "let each thread compute more results, 4 x 4 or more, from words that it keeps in registers:"
    " twice as many both ways take half of the loads"
)


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the loads of shared memory where it limits."""
    loads = [a for a in evidence.worst if (a.kind.space, a.kind.access) == ("shared", "load")]
    stored = evidence.total("shared_store_bytes_asked")
    asked = evidence.total("shared_load_bytes_asked")
    work = sum(evidence.total(name) * size for name, size in OPERANDS.items())
    work = work or evidence.total(INTEGER) * INTEGER_BYTES
    if not loads or not stored or not work or not _is_limit(evidence):
        return
    passes, ideal = (evidence.total(f"shared_load_{name}") for name in ("passes", "ideal_passes"))
    words, times = asked / work, asked / stored
    if passes > 2 * ideal or times < TIMES or not (1 + TOLERANCE) * ENOUGH <= words <= MOST:
        return
    for access in loads:
        yield Finding(
            f"shared memory limits: {words:.2g} words for each arithmetic instruction",
            f"threads load each word of the tile {times:.3g} times; {evidence.describe(access)}",
            SINGLE if words >= SEVERAL else MORE,
            access.pc,
            evidence.share(access, "passes"),
            access.identifier,
            saved=PART,
            effort=2,
        )


def _is_limit(evidence: Evidence) -> bool:
    """Return whether shared memory is the longest part of the estimate, else the longest bound.

    SMs without a block are idle longer than the others load: fewer blocks would not help then. A
    bound knows no latency, which limits an SM of few warps.
    """
    profile, sms = evidence.profile, evidence.device.chip.sms
    if profile.launch.blocks < sms:
        return False
    if not profile.estimate:
        warps = profile.launch.blocks * profile.launch.warps
        return profile.limited_by == "shared memory" and warps >= WARPS * sms
    longest = profile.estimate.parts[0].what if profile.estimate.parts else ""
    moved = evidence.total("global_load_bytes_moved") / LINE
    return longest == L1_PART and evidence.total("shared_load_passes") > moved

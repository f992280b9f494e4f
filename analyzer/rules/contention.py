"""Contended atomics: many lanes on one address, or all blocks on a small table in global memory.

Atomics on one address serialize. Where the assembler or the chip combines the lanes
of a warp, the rule applies only if the turns of warps limit the launch.
"""

from collections.abc import Iterator

from ..counting.bounds import AT_ONE_ADDRESS
from ..evidence.evidence import AddressUse, Evidence, Finding, estimate_with
from ..why.search import Access

CROWD = 4
"""Lanes on one address, on average over all requests, from which contention is reported."""
COMBINED = ("elected", "counted")
FEWER, LEAST_NS = 4, 1000
"""Atomics of a block at one address, and the gain, from which one atomic per block is advised."""
OFTEN, FEWEST, FITTING = 8, 16, 1 << 14
"""Returns of a block to each place from which a table is reported; its fewest places and most
bytes.
"""
ATOMIC_PARTS = ("atomics", "atomics of a slice", "atomics tried again", AT_ONE_ADDRESS)
"""Parts of an estimate that grow with the atomics on global memory."""
WITHIN_WARP = (
    "add up within the warp first, by shuffles or a vote, and let one lane do the atomic;"
    " or give each warp a copy of its own and add up at the end"
)
OF_A_BLOCK = (
    "add up within the block first, in shared memory or by shuffles, and let one thread of it do"
    " the atomic"
)
WITHIN_BLOCK = "count in shared memory, and let each block add its counts to `{}` once, at the end"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check atomics on global and shared memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.access not in ("atomic", "reduction"):
            continue
        use, estimate = evidence.use_of(access), None
        if kind.collision not in COMBINED and use.crowd >= CROWD * use.rows:
            crowd = f"{use.crowd / use.rows:.3g}"
            what = f"atomics meet on one address: {crowd} lanes of a warp, on average"
            observation = (
                f"{use.rows:,} requests of {use.lanes:,} lanes want {use.distinct:,} addresses"
            )
            change, least = WITHIN_WARP, _with_fewer(evidence, kind.space, use.crowd / use.rows)
        elif table := _small_table(evidence, access, use):
            what = f"atomics of each block come back to the same places of `{table}`"
            blocks, places = evidence.profile.launch.blocks, _places(evidence, access, table)
            observation = f"{use.lanes:,} atomics of {blocks} blocks go to {places} places"
            change, least = WITHIN_BLOCK.format(table), None
            estimate = _of_a_table(evidence, access, blocks * places / use.lanes)
        elif kind.collision in COMBINED and (least := _of_blocks(evidence, kind.space, use)):
            what = "atomics of every warp meet on one address"
            observation = (
                f"{use.rows:,} requests want {use.distinct:,} addresses, one after another"
            )
            change = OF_A_BLOCK
        else:
            continue
        yield Finding(
            what,
            observation,
            change,
            access.pc,
            evidence.share(access, "transactions" if kind.space == "global" else "passes"),
            access.identifier,
            least=least,
            estimate=estimate,
        )


def _with_fewer(evidence: Evidence, space: str, times: float) -> float | None:
    """Return the longest bound with turns divided by `times`; None if turns are not the limit."""
    bounds = evidence.profile.bounds
    if space != "global" or evidence.profile.limited_by != AT_ONE_ADDRESS:
        return None
    return max([bounds[0].ns / times, *(bound.ns for bound in bounds[1:])])


def _of_blocks(evidence: Evidence, space: str, use: AddressUse) -> float | None:
    """Return the longest bound if one warp per block acts for all; None if that does not help."""
    warps = evidence.profile.launch.warps
    each = min(warps, use.rows / evidence.profile.launch.blocks)
    if use.distinct > use.rows or each < FEWER:
        return None
    least = _with_fewer(evidence, space, each)
    gain = 0.0 if least is None else evidence.profile.bounds[0].ns - least
    return least if gain >= LEAST_NS else None


def _small_table(evidence: Evidence, access: Access, use: AddressUse) -> str:
    """Return the global array that each block revisits often; empty if there is none."""
    name = evidence.array_of(access) if access.kind.space == "global" else ""
    if not name or evidence.trials.arrays[name].bytes > FITTING:
        return ""
    places, blocks = _places(evidence, access, name), evidence.profile.launch.blocks
    return name if places >= FEWEST and use.distinct >= OFTEN * blocks * places else ""


def _of_a_table(evidence: Evidence, access: Access, part: float) -> float | None:
    """Return the estimated time if `part` of the atomics remain; None beside others."""
    every = [a for a in evidence.worst if a.kind.access in ("atomic", "reduction")]
    if any(a.pc != access.pc for a in every if a.kind.space == "global"):
        return None
    return estimate_with(evidence, (), scales=dict.fromkeys(ATOMIC_PARTS, part))


def _places(evidence: Evidence, access: Access, name: str) -> int:
    """Return how many values of the access's width an array holds."""
    return evidence.trials.arrays[name].bytes // access.kind.width

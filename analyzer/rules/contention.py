"""Atomics of many lanes on one address: they take effect one after another. Or on a small table in
global memory, of which each block may as well have its own.

Where the assembler combines the lanes' values, or the chip counts them, nothing is lost, and
nothing is said.
"""

from collections.abc import Iterator

from ..advice.address_use import AddressUse
from ..advice.advice import Evidence, Finding
from ..why.search import Access

CROWD = 4
"""Lanes on one address, on average over all requests, from which on it is worth a word."""
COMBINED = ("elected", "counted")
OFTEN, FEWEST, FITTING = 8, 16, 1 << 14
"""How often a block comes back to each place, of a table of so many places and bytes."""
WITHIN_WARP = (
    "add up within the warp first, by shuffles or a vote, and let one lane do the atomic;"
    " or give each warp a copy of its own and add up at the end"
)
WITHIN_BLOCK = "count in shared memory, and let each block add its counts to `{}` once, at the end"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at atomics on global and shared memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.access not in ("atomic", "reduction"):
            continue
        use = evidence.use_of(access)
        if kind.collision not in COMBINED and use.crowd >= CROWD * use.rows:
            crowd = f"{use.crowd / use.rows:.3g}"
            what = f"atomics meet on one address: {crowd} lanes of a warp, on average"
            seen = f"{use.rows:,} requests of {use.lanes:,} lanes want {use.distinct:,} addresses"
            change = WITHIN_WARP
        elif table := _small_table(evidence, access, use):
            what = f"atomics of each block come back to the same places of `{table}`"
            blocks, places = evidence.profile.launch.blocks, _places(evidence, access, table)
            seen = f"{use.lanes:,} atomics of {blocks} blocks go to {places} places"
            change = WITHIN_BLOCK.format(table)
        else:
            continue
        yield Finding(
            what,
            seen,
            change,
            access.pc,
            evidence.share(access, "transactions" if kind.space == "global" else "passes"),
            access.identifier,
        )


def _small_table(evidence: Evidence, access: Access, use: AddressUse) -> str:
    """The array in global memory to whose places each block comes back often; empty if none."""
    name = evidence.array_of(access) if access.kind.space == "global" else ""
    if not name or evidence.trials.arrays[name].bytes > FITTING:
        return ""
    places, blocks = _places(evidence, access, name), evidence.profile.launch.blocks
    return name if places >= FEWEST and use.distinct >= OFTEN * blocks * places else ""


def _places(evidence: Evidence, access: Access, name: str) -> int:
    """How many values of the access's width an array holds."""
    return evidence.trials.arrays[name].bytes // access.kind.width

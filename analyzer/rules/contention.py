"""Atomics of many lanes on one address: they take effect one after another.

Where the assembler combines the lanes' values, or the chip counts them, nothing is lost, and
nothing is said.
"""

from collections.abc import Iterator

from ..advice import Evidence, Finding

CROWD = 4
"""Lanes on one address, on average over all requests, from which on it is worth a word."""
COMBINED = ("elected", "counted")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at atomics on global and shared memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.access not in ("atomic", "reduction") or kind.collision in COMBINED:
            continue
        use = evidence.use_of(access)
        if use.crowd < CROWD * use.rows:
            continue
        crowd = f"{use.crowd / use.rows:.3g}"
        yield Finding(
            f"atomics meet on one address: {crowd} lanes of a warp, on average",
            f"{use.rows} requests of {use.lanes} lanes want {use.distinct} addresses",
            "add up within the warp first, by shuffles or a vote, and let one lane do the atomic;"
            " or give each warp a copy of its own and add up at the end",
            access.pc,
            evidence.share(access, "transactions" if kind.space == "global" else "passes"),
            access.identifier,
        )

"""Divergent constant loads: a warp reads several addresses, but the cache serves one at a time."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check every load from constant memory."""
    for access in evidence.worst:
        conflicts = evidence.of(access.pc, access.kind.prefix + "conflicts")
        if access.kind.space == "const" and conflicts and access.cost > access.ideal:
            yield Finding(
                f"lanes read different constants at once: {conflicts:,} wavefronts are extra",
                evidence.describe(access),
                "keep the table in shared or global memory, or let all lanes read one entry",
                access.pc,
                evidence.share(access, "passes"),
                access.identifier,
            )

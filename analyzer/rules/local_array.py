"""Per-thread arrays indexed at run time: they are in local memory, not in registers."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding

SINE, LARGEST = "__cudart_i2opi", 40
"""The table with which CUDA's sine reduces large arguments, and the bytes of its array."""
UNROLL = "unroll the loops so that every index is known when compiling, or keep it in shared memory"
IN_PERIOD = (
    "sine and cosine of arguments beyond 105615 go through it: bring them into a period before"
    " (sinpif, cospif), or let the hardware approximate (__sinf, __cosf)"
)


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check accesses to local memory; one finding per launch, at the most expensive access.

    If every instruction accesses one place, the assembler keeps registers: only arguments of
    functions (such as `printf`) are in memory, and must be.
    """
    local = [access for access in evidence.worst if access.kind.space == "local"]
    if all(evidence.use_of(access).first is not None for access in local):
        return
    requests, moved, others = (
        sum(evidence.total(f"{space}_{act}_{what}") for act in ("load", "store"))
        for space, what in (
            ("local", "requests"),
            ("local", "bytes_moved"),
            ("global", "bytes_moved"),
        )
    )
    top = max(local, key=lambda a: evidence.of(a.pc, a.kind.prefix + "bytes_moved"))
    size = evidence.profile.launch.local_bytes
    is_sine = size <= LARGEST and any(SINE in text for text in _texts(evidence))
    yield Finding(
        f"an array of each thread lives in local memory: {requests:,} requests",
        f"{size} bytes a thread, indexed at run time",
        IN_PERIOD if is_sine else UNROLL,
        top.pc,
        moved / max(1, moved + others),
        top.identifier,
    )


def _texts(evidence: Evidence) -> list[str]:
    texts: list[str] = evidence.trace.instructions()["text"].to_pylist()
    return texts

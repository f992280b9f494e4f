"""Tiny launches: a kernel that is launched often and takes little longer than an empty one.

Reported where latencies were measured, for kernels with at least OFTEN launches in the trace.
"""

from collections.abc import Iterator

from ...models.replay.device.measured import load_measured
from ..counting.bounds import time_text
from ..evidence.evidence import Evidence, Finding

OFTEN = 16
"""Fewest launches of a kernel in the trace."""
PART = 0.5
"""Part of the time from which launch overhead dominates."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Compare the estimate with the time of an empty kernel."""
    profile = evidence.profile
    measured = load_measured(evidence.device)
    if not profile.estimate or not measured or evidence.launches < OFTEN:
        return
    empty = measured.launch_ns(profile.estimate.mhz)
    if empty < PART * profile.estimate.ns:
        return
    yield Finding(
        f"{evidence.launches} launches that take about {time_text(profile.estimate.ns)} each",
        f"an empty kernel takes {time_text(empty)}",
        "let one launch do the work of several: a larger grid, a loop in the kernel, several"
        " kernels in one; a CUDA graph at least spares the host the calls",
        effort=2,
    )

"""Tiny launches: a kernel that is launched often and takes hardly longer than an empty one.

Reported where latencies were measured, for kernels with at least OFTEN launches in the trace.
"""

from collections.abc import Iterator

from ...models.replay.device.measured import load_measured
from ..counting.bounds import time_text
from ..evidence.evidence import Evidence, Finding

OFTEN = 16
"""Launches of a kernel in the trace from which on it is worth a word."""
PART = 0.5
"""The part of the time from which on launching is most of it."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Compare the estimate with what an empty kernel takes."""
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
    )

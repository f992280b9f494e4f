"""Launches that did nothing: no thread passed the bounds check, or none stored a result."""

from collections.abc import Mapping

NOTHING = (
    "no thread loaded or stored anything; if the kernel checks its bounds, none passed: give other"
    " numbers, or another shape"
)
NOT_KEPT = "no thread stored anything to global memory"
KEEPING = ("global_store", "global_atomic", "global_reduction", "surface_store")
"""Accesses by which a launch leaves anything behind."""
READING = ("const_",)
"""What a bounds check itself may read."""


def did_nothing(sums: Mapping[str, int]) -> bool:
    """Whether no thread of a launch with these sums accessed memory, constants aside."""
    return not any(not name.startswith(READING) for name in _used(sums))


def kept_nothing(sums: Mapping[str, int]) -> bool:
    """Whether no thread changed memory that outlives the launch."""
    return not any(name.startswith(KEEPING) for name in _used(sums))


def _used(sums: Mapping[str, int]) -> list[str]:
    """The raw counters of requests that are not zero."""
    return [name for name, many in sums.items() if many and name.endswith("_requests")]

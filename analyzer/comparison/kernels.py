"""The kernels of one trace as variants of each other, or the launches of its only kernel."""

from dataclasses import replace

from ...errors import CutraceError
from ..launch_profile import LaunchProfile
from ..profile import Profile

MOST = 8
"""Variants that stand side by side."""


def split_kernels(profile: Profile, name: str) -> dict[str, Profile]:
    """A profile for each kernel by its name; of one kernel alone, for each launch by its number.

    `name` is the trace's, for the `CutraceError` where there is one launch, or too many variants.
    """
    found: dict[str, list[LaunchProfile]] = {}
    is_one = len({p.launch.name for p in profile.launches}) == 1
    for p in profile.launches:
        found.setdefault(f"launch {p.number}" if is_one else p.launch.name, []).append(p)
    if len(found) < 2:
        raise CutraceError(
            f"nothing to compare with: {name} has one launch; give two traces or more"
        )
    if len(found) > MOST:
        what = "launches" if is_one else "kernels"
        raise CutraceError(
            f"{name} has {len(found)} {what}, too many side by side: choose launches by their"
            f" numbers, {MOST} at most, say --launch 0,1"
        )
    return {kernel: replace(profile, launches=tuple(mine)) for kernel, mine in found.items()}

"""The variant with the shortest bound: how many times faster it is, and what limits it."""

from collections.abc import Sequence

from ...lazy_dataclass import dataclass
from ..counting.bounds import Bound, time_text

ALIKE = 0.01
"""The part of the baseline's time within which two variants are told to be alike."""


@dataclass(frozen=True, slots=True)
class Faster:
    """The variant with the shortest bound, by its place, its bound and the baseline's."""

    variant: int
    bound: Bound
    baseline: Bound

    def tell(self, names: Sequence[str], baseline: str) -> str:
        """The sentence, for variants of these names.

        >>> slow, fast = Bound("banks", 900.0, 9, "wavefronts"), Bound("L2", 300.0, 9, "bytes")
        >>> Faster(1, fast, slow).tell(["a", "b"], "a")
        'b needs at least 300 ns instead of 900 ns for a, 3 times as fast: limited by L2, not banks'
        """
        times = time_text(self.bound.ns), time_text(self.baseline.ns)
        ratio = self.baseline.ns / self.bound.ns
        one, other = self.bound.resource, self.baseline.resource
        limits = f"limited by {one}" + (f", not {other}" if one != other else " as before")
        return (
            f"{names[self.variant]} needs at least {times[0]} instead of {times[1]} for {baseline},"
            f" {ratio:.3g} times as fast: {limits}"
        )


def find_faster(bounds: Sequence[Sequence[Bound]], base: int) -> Faster | None:
    """The variant that is faster than the baseline by its bound; None if none is, or nobody knows.

    `bounds` are each variant's, the longest first.
    """
    if not all(bounds) or not bounds:
        return None
    longest = [each[0] for each in bounds]
    best = min(range(len(longest)), key=lambda index: longest[index].ns)
    if longest[best].ns >= (1 - ALIKE) * longest[base].ns:
        return None
    return Faster(best, longest[best], longest[base])

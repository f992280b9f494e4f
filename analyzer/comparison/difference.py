"""Whether two variants differ in time: the ratio of their estimates, and the error of that ratio.

Two estimates of similar kernels err alike, so their ratio is more exact than two independent
estimates, and the more so the closer they are. tests/validate/test_differences.py derives the error
from pairs of kernels that one program launches for one task, each profiled on an H100 or H200
(tests/validate/time; programs whose estimates came from PTX are left out). The factor between
estimated and measured ratio is at most

    PAIR_ERROR * ratio ** CHANGE_ERROR          (of a ratio below 1: its reciprocal)

for 9 of 10 pairs whose estimates differ by less than a factor of 2.1. From there on it is
MOST_ERROR, that of two independent estimates: 6 of 7 measured ratios are within it. The interval
leaves out 1, so that one variant is called faster, where the ratio is above
PAIR_ERROR ** (1 / (1 - CHANGE_ERROR)), 1.32. 97 of 100 pairs called so were measured in that order;
a lower bound alone never calls a variant faster.
"""

from collections.abc import Iterable
from math import log, sqrt

from ...base.dataclass import dataclass
from ...models.replay.device.measured import WITHIN
from ..launch_profile import LaunchProfile
from ..time.estimate_text import Range

PAIR_ERROR, CHANGE_ERROR = 1.15, 0.5
"""Error of a ratio of estimates, fitted by tests/validate/test_differences.py: a factor between any
two kernels, and the part of the change (in logarithms) that may be an error of the model."""
MOST_ERROR = WITHIN[1] / WITHIN[0]
"""Error of a ratio of independent estimates."""
NO_DIFFERENCE = "no difference beyond the error"


@dataclass(frozen=True, slots=True)
class Difference:
    """The baseline's time over a variant's: above 1 the variant is faster.

    `low` and `high` hold the ratio that a chip has in 9 of 10 pairs, of large ratios in 6 of 7.
    Where pairs were never measured (`is_measured` false) that is a guess.
    """

    ratio: float
    low: float
    high: float
    is_measured: bool = True

    @property
    def verdict(self) -> str:
        """Return `faster`, `slower`, or `same` if the interval holds 1."""
        return "faster" if self.low > 1 else "slower" if self.high < 1 else "same"

    def text(self, variant: str = "after", baseline: str = "before") -> str:
        """Return the comparison as a sentence without its period.

        >>> print(difference((16900, 16900), (5950, 5950)).text())
        after is about 2.84 times as fast as before (1.7 to 4.73: right for 6 of 7 pairs on chips)
        >>> print(difference((100, 100), (150, 150)).text("b", "a"))
        b is about 1.5 times as slow as a (1.06 to 2.11: right for 9 of 10 pairs on chips)
        >>> print(difference((100, 100), (93, 93)).text("b", "a"))
        no difference beyond the error: b takes 0.93 times as long as a (0.78 to 1.11 on a chip)
        >>> print(difference((100, 100), (100, 100)).text("b", "a"))
        no difference beyond the error: b takes as long as a (0.87 to 1.15 times on a chip)
        >>> print(difference((156, 156), (100, 100), (0.8, 1.8)).text())
        after is about 1.56 times as fast as before (1.0005 to 2.43 expected)
        """
        low, ratio, high = self.low, self.ratio, self.high
        if self.verdict == "same":
            times, ends = f"{1 / ratio:.2g}", f"{1 / high:.2g} to {1 / low:.3g}"
            is_equal = times == "1"
            where = "on a chip" if self.is_measured else "expected"
            long = f"as long as {baseline} ({ends}{' times' * is_equal} {where})"
            return f"{NO_DIFFERENCE}: {variant} takes {'' if is_equal else f'{times} times '}{long}"
        if self.verdict == "slower":
            low, ratio, high = 1 / high, 1 / ratio, 1 / low
        how = "fast" if self.verdict == "faster" else "slow"
        share = "6 of 7" if ratio_error(ratio) == MOST_ERROR else "9 of 10"
        sure = f": right for {share} pairs on chips" if self.is_measured else " expected"
        ends = f"({_above_one(low)} to {high:.3g}{sure})"
        return f"{variant} is about {ratio:.3g} times as {how} as {baseline} {ends}"


def difference(before: Range, after: Range, within: Range = WITHIN) -> Difference:
    """Compare estimated times in ns, each the least and the most of a variant.

    `within` are the ends of measured over estimated times on the device.
    """
    least, most = before[0] / after[1], before[1] / after[0]
    errors = ratio_error(least, within), ratio_error(most, within)
    low, high = least / errors[0], most * errors[1]
    return Difference(sqrt(least * most), low, high, tuple(within) == WITHIN)


def _above_one(low: float) -> str:
    """Return a ratio above 1 with so many digits that it is one.

    >>> _above_one(1.16), _above_one(1.0039), _above_one(1.00000001)
    ('1.16', '1.004', '1')
    """
    return next((text for n in (3, 4, 5) if (text := f"{low:.{n}g}") != "1"), "1")


def ratio_error(ratio: float, within: Range = WITHIN) -> float:
    """Return the factor within which 9 of 10 measured ratios are from an estimated one.

    Of a large ratio, 6 of 7 are. On devices with less exact estimates the error of a pair is taken
    to grow as that of a single launch does.

    >>> ratio_error(1.0), round(ratio_error(4.0), 2), round(ratio_error(0.25), 2)
    (1.15, 1.67, 1.67)
    >>> round(ratio_error(1.0, (0.6, 1.7)), 2), round(ratio_error(4.0, (0.6, 1.7)), 2)
    (1.33, 2.66)
    """
    most = within[1] / within[0]
    pair = PAIR_ERROR ** (log(most) / log(MOST_ERROR))
    return float(min(pair * max(ratio, 1 / ratio) ** CHANGE_ERROR, most))


def estimated_range(launches: Iterable[LaunchProfile]) -> Range | None:
    """Return the estimated time of launches together in ns; None if one has no estimate.

    A sampled launch has a least and a most time, depending on its caches.
    """
    least = most = 0.0
    for launch in launches:
        if launch.estimate:
            ends = launch.estimate.ns, launch.estimate.ns
        elif launch.estimate_between:
            ends = launch.estimate_between[0].ns, launch.estimate_between[1].ns
        else:
            return None
        least, most = least + ends[0], most + ends[1]
    return (least, most) if least else None

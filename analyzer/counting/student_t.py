"""Student's distribution: quantiles for whole degrees of freedom, by its finite sums.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from functools import cache
from math import atan, cos, pi, sin, sqrt


@cache
def quantile(freedom: int, level: float = 0.95) -> float:
    """Return t such that a value lies between -t and t with probability `level`.

    >>> [round(quantile(freedom), 3) for freedom in (1, 2, 3, 10, 19, 100)]
    [12.706, 4.303, 3.182, 2.228, 2.093, 1.984]
    """
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability of lying between -t and t."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cos(angle) ** 2
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total

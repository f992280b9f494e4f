"""Format the value of a counter for people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..counting.evaluate import Value
    from ..counting.interval import Interval
    from ..counting.vocabulary import Counter


def number(value: "Value", counter: "Counter") -> str:
    """Format a count with all digits, a ratio as a percentage, a missing value as empty text.

    Other values have seven digits. Times have their unit.

    >>> from cutrace.analyzer.counting.vocabulary import find_counters
    >>> number(0.03125, find_counters(["sector_efficiency"])[0])
    '3.125 %'
    """
    if value is None:
        return ""
    if counter.unit in ("ratio", "%"):
        percent = value * (100 if counter.unit == "ratio" else 1)
        return f"{percent:.3f}".rstrip("0").rstrip(".") + " %"
    written = f"{value:,}" if isinstance(value, int) else _seven_digits(value)
    return f"{written} {counter.unit}" if counter.unit == "ns" else written


def _seven_digits(value: float) -> str:
    """Return Python's notation, rounded to seven digits if that is longer.

    >>> _seven_digits(1 / 48), _seven_digits(4.0), _seven_digits(2.5e-9), _seven_digits(1e5 / 7)
    ('0.02083333', '4', '2.5e-09', '14,285.71')
    """
    written = str(value)
    rounded = f"{value:.7g}"
    if len(rounded) >= len(written) or float(rounded) == value:
        rounded = written
    return rounded if "e" in rounded else f"{float(rounded):,}".removesuffix(".0")


def bracket(value: "Value", interval: "Interval | None", counter: "Counter") -> str:
    """Return a formatted value, with its interval in brackets if it has one."""
    if interval is None or value is None:
        return number(value, counter)
    low, high = (number(end, counter) for end in interval)
    return f"{number(value, counter)} [{low}, {high}]"


def ratio_text(ratio: float | None) -> str:
    """Format the ratio of a value to the baseline's; empty if unknown.

    >>> ratio_text(0.125), ratio_text(2.267), ratio_text(1.0), ratio_text(0.0)
    ('8x less', '2.27x more', 'same', 'to 0')
    """
    if ratio is None:
        return ""
    if ratio in (0, 1):
        return "same" if ratio else "to 0"
    return f"{ratio:.3g}x more" if ratio > 1 else f"{1 / ratio:.3g}x less"

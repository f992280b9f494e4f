"""A counter's value as people read it."""

from ..counting.evaluate import Value
from ..counting.interval import Interval
from ..counting.vocabulary import Counter


def number(value: Value, counter: Counter) -> str:
    """A count with all its digits; a ratio as a percentage; an absent value as nothing.

    Of what is neither there are seven digits.

    >>> from cutrace.analyzer.counting.vocabulary import find_counters
    >>> number(0.03125, find_counters(["bus_utilization"])[0])
    '3.125 %'
    """
    if value is None:
        return ""
    if counter.unit in ("ratio", "%"):
        percent = value * (100 if counter.unit == "ratio" else 1)
        return f"{percent:.3f}".rstrip("0").rstrip(".") + " %"
    return str(value) if isinstance(value, int) else _seven_digits(value)


def _seven_digits(value: float) -> str:
    """As Python writes it, or rounded where that is longer.

    >>> _seven_digits(1 / 48), _seven_digits(4.0), _seven_digits(2.5e-9)
    ('0.02083333', '4.0', '2.5e-09')
    """
    written = str(value)
    rounded = f"{value:.7g}"
    return rounded if len(rounded) < len(written) and float(rounded) != value else written


def bracket(value: Value, interval: Interval | None, counter: Counter) -> str:
    """A value as it is written, with its interval in brackets if it has one."""
    if interval is None or value is None:
        return number(value, counter)
    low, high = (number(end, counter) for end in interval)
    return f"{number(value, counter)} [{low}, {high}]"

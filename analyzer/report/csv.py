"""CSV: one row per value, for programs. A missing value is an empty cell, ratios have all
digits."""

from collections.abc import Iterator

from ..counting.evaluate import Value
from ..counting.interval import Interval
from ..launch_profile import KEYS
from ..profile import Profile
from ..sheet import sheets
from ..text.layout import csv_text

BEFORE = ("launch", "kernel", "device")
AFTER = ("vocabulary", "counter", "unit", "value")
ENDS = ("low", "high")
"""Suffixes of the columns of a sampled launch: the ends of the 95 % confidence interval."""


def render(profile: Profile) -> str:
    """Return the profile as CSV with a header row; the grouping's keys are between BEFORE and
    AFTER.
    """
    sampled = any(launch.launch.kept.sample.blocks for launch in profile.launches)
    ends = ENDS if sampled else ()
    head = (*BEFORE, *KEYS.get(profile.view.by, ()), *AFTER, *ends)
    every = ((*row, *(interval or ("", "")) * sampled) for row, interval in rows(profile))
    return csv_text([head, *every])


def rows(profile: Profile) -> Iterator[tuple[tuple[Value | str, ...], Interval | None]]:
    """Yield the values in table order, with their intervals."""
    for sheet in sheets(profile.launches, profile.view):
        for block in sheet.blocks:
            for section in block.sections:
                for row in section.rows:
                    for place, device in enumerate(sheet.devices):
                        counter, value = row.counter, row.values[place]
                        before = (sheet.number, sheet.heading, device, *block.key.values())
                        after = (section.vocabulary, counter.name, counter.unit, value)
                        yield (*before, *after), row.interval(place)

"""CSV: one row a value, for programs. An absent value is an empty cell, ratios have all digits."""

import csv
from collections.abc import Iterator
from io import StringIO

from ..evaluate import Value
from ..profile import KEYS, Profile
from ..sheet import sheets

BEFORE = ("launch", "kernel", "device")
AFTER = ("vocabulary", "counter", "unit", "value")


def render(profile: Profile) -> str:
    """The profile as CSV with a header row; between BEFORE and AFTER stand the grouping's keys."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*BEFORE, *KEYS.get(profile.view.by, ()), *AFTER))
    writer.writerows(rows(profile))
    return out.getvalue()


def rows(profile: Profile) -> Iterator[tuple[Value | str, ...]]:
    """The values in the order of the tables."""
    for sheet in sheets(profile):
        for block in sheet.blocks:
            for section in block.sections:
                for row in section.rows:
                    for device, value in zip(sheet.devices, row.values, strict=True):
                        yield (
                            *(sheet.number, sheet.heading, device),
                            *block.key.values(),
                            *(section.vocabulary, row.counter.name, row.counter.unit, value),
                        )

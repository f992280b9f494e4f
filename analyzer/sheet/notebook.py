"""What a notebook shows of a profile: a table a launch, every text escaped."""

from collections.abc import Sequence

from ...traces.table.table_html import more, render_table
from ..launch_profile import LaunchProfile
from ..text.number import number
from .sheet import sheets
from .view import View
from .wording import is_folded

MOST = 8
"""Launches that are shown; how many more there are is said."""


def show_launches(launches: Sequence[LaunchProfile], view: View) -> str:
    """A table a launch: counters in rows, devices in columns, zeros left out."""
    numbers = [*dict.fromkeys(launch.number for launch in launches)]
    first = {*numbers[:MOST]}
    parts = []
    for sheet in sheets((launch for launch in launches if launch.number in first), view):
        rows = [
            (row.counter.name, *(number(value, row.counter) for value in row.values))
            for block in sheet.blocks
            for section in block.sections
            for row in section.rows
            if not is_folded(row, section, view) and any(row.values)
        ]
        if any(sheet.refusals):
            rows.insert(0, ("launch", *(refusal or "runs" for refusal in sheet.refusals)))
        parts.append(render_table(sheet.heading, ("counter", *sheet.devices), rows, len(rows)))
    return "".join((*parts, more(len(numbers) - len(first), "launches")))

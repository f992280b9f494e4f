"""What notebooks show of profiles and comparisons: tables, every text escaped."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from ...traces.table.table_html import render_table
from ..text.launch_text import launch_text
from .wording import is_folded, number

if TYPE_CHECKING:
    from ..comparison.comparison import Comparison, Table
    from ..profile import LaunchProfile, Profile

MOST = 8
"""Launches, or tables of a comparison, that are shown; how many more there are is said."""


def show_profile(profile: "Profile") -> str:
    """A table a launch: counters in rows, devices in columns, zeros left out."""
    from dataclasses import replace

    from .sheet import sheets

    numbers = profile.numbers[:MOST]
    shown = replace(profile, launches=tuple(p for n in numbers for p in profile.of(n)))
    parts = []
    for sheet in sheets(shown):
        rows = [
            (row.counter.name, *(number(value, row.counter) for value in row.values))
            for block in sheet.blocks
            for section in block.sections
            for row in section.rows
            if not is_folded(row, section, shown.view) and any(row.values)
        ]
        if any(sheet.refusals):
            rows.insert(0, ("launch", *(refusal or "runs" for refusal in sheet.refusals)))
        parts.append(render_table(sheet.heading, ("counter", *sheet.devices), rows, len(rows)))
    return "".join((*parts, _more(len(profile.numbers) - len(numbers), "launches")))


def show_launch(launch: "LaunchProfile") -> str:
    """The counters of a launch on a device that are not 0."""
    caption = f"{launch_text(launch.launch)} on {launch.device_name}"
    if launch.refusal:
        return render_table(caption, ("launch",), [(launch.refusal,)], 1)
    rows = [*_counters(launch)]
    return render_table(caption, ("counter", launch.device), rows, len(rows))


def show_comparison(comparison: "Comparison") -> str:
    """A table a device and launch or line: the counters that differ, a column a variant."""
    parts = [_compared(comparison, table) for table in comparison.tables[:MOST]]
    parts += [f"<p>{escape(note)}</p>" for note in comparison.notes]
    return "".join((*parts, _more(len(comparison.tables) - MOST, "tables")))


def _counters(launch: "LaunchProfile") -> Iterator[tuple[str, str]]:
    for name, counter in launch.definitions.items():
        if counter and (value := launch.counters[name]):
            yield name, number(value, counter)


def _compared(comparison: "Comparison", table: "Table") -> str:
    launch = "all launches" if table.launch is None else f"launch {table.launch}"
    caption = f"{table.device}, {table.text or launch}"
    rows = [
        (
            row.counter.name,
            *(number(c.value, row.counter) + " *" * c.is_best for c in row.cells),
        )
        for row in table.rows
        if len({cell.value for cell in row.cells}) > 1
    ]
    if any(table.refusals):
        rows.insert(0, ("launch", *(refusal or "runs" for refusal in table.refusals)))
    return render_table(caption, ("counter", *comparison.variants), rows, len(rows))


def _more(number: int, what: str) -> str:
    return f"<p>and {number} more {what}</p>" if number > 0 else ""

"""Does a trace keep what FORMAT.md promises? The checks, in order, and their findings."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

from ..errors import CutraceError
from .checks.check_access import (
    check_access_lanes,
    check_addresses,
    check_patterns,
    check_spaces,
    check_texels,
    check_widths,
)
from .checks.check_agreement import check_accesses_ran, check_texels_ran
from .checks.check_code import check_instructions, check_lanes_on
from .checks.check_control import (
    check_all_warps_ran,
    check_control_lanes,
    check_control_steps,
    check_path_entries,
)
from .checks.check_kept import check_kept_control, check_kept_rows, check_kept_texels
from .checks.check_manifest import check_events, check_folders, check_warps
from .checks.check_order import check_access_order, check_texel_order
from .checks.check_outside import check_outside_rows
from .checks.recorded import Finding, Recorded
from .reader import LaunchTrace, Trace

Check: TypeAlias = Callable[[Recorded], Iterator[Finding]]

STAGES: tuple[tuple[tuple[str, Check], ...], ...] = (
    (("instructions", check_instructions),),
    (
        ("patterns", check_patterns),
        ("paths", check_path_entries),
    ),
    (
        ("lanes_on", check_lanes_on),
        ("control", check_control_lanes),
        ("control", check_control_steps),
        ("control", check_all_warps_ran),
        ("control", check_kept_control),
        ("accesses", check_spaces),
        ("accesses", check_widths),
        ("accesses", check_kept_rows),
        ("accesses", check_access_lanes),
        ("accesses", check_access_order),
        ("accesses", check_addresses),
        ("accesses", check_outside_rows),
        ("texels", check_texels),
        ("texels", check_kept_texels),
        ("texels", check_texel_order),
    ),
    (
        ("accesses", check_accesses_ran),
        ("texels", check_texels_ran),
    ),
)
"""What is checked of a launch. A stage builds on those before: it is skipped if one of them broke.

That identifiers, blocks, warps and pcs are in range, that instructions have their pcs and the lists
of a path one length, is checked by the reader, whenever it reads; of the manifest all but events.
"""


MOST_ALIKE = 100


def verify(trace: Trace) -> list[str]:
    """Return broken promises of a trace, as sentences that begin with the place: all of them, but
    of the manifest's events and of the folder MOST_ALIKE each."""
    findings = [f"manifest: {finding}" for finding in _some(check_events(trace.manifest))]
    findings += [f"folder: {finding}" for finding in _some(check_folders(trace))]
    for launch in trace.launches:
        place = f"launch {launch.number} ({launch.launch.kernel})"
        findings += [f"{place}: {finding}" for finding in _verify_launch(launch)]
    return findings


def _some(findings: Iterator[str]) -> Iterator[str]:
    """Yield the first of them, and how many more there are."""
    yield from islice(findings, MOST_ALIKE)
    if left := sum(1 for _ in findings):
        yield f"and {left} more"


def _verify_launch(launch: LaunchTrace) -> list[str]:
    found = list(check_warps(launch.launch))
    recorded = Recorded(launch)
    for stage in STAGES:
        if found:
            break
        for table, check in stage:
            found += _run(check, recorded, table)
    return list(dict.fromkeys(found))


def _run(check: Check, recorded: Recorded, table: str) -> list[str]:
    merged: dict[str, Finding] = {}
    try:
        for finding in check(recorded):
            before = merged.setdefault(finding.text, finding._replace(rows=0))
            merged[finding.text] = before._replace(rows=before.rows + finding.rows)
    except CutraceError as error:
        return [str(error)]
    return [f"{table}: {_sentence(finding)}" for finding in merged.values()]


def _sentence(finding: Finding) -> str:
    place = f"row {finding.row}: " if finding.row >= 0 else ""
    more = f" (and {finding.rows - 1} more rows)" if finding.rows > 1 else ""
    return f"{place}{finding.text}{more}"

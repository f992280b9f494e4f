"""Does a trace keep what FORMAT.md promises? The checks, in order, and their findings."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..errors import CutraceError
from .check_access import (
    check_access_lanes,
    check_addresses,
    check_patterns,
    check_spaces,
    check_texels,
    check_widths,
)
from .check_agreement import check_accesses_ran, check_texels_ran
from .check_code import check_basic_blocks, check_instructions, check_lanes_on, check_pcs
from .check_control import (
    check_all_warps_ran,
    check_control_lanes,
    check_control_steps,
    check_path_entries,
    check_path_lists,
)
from .check_kept import check_kept, check_kept_control, check_kept_rows, check_kept_texels
from .check_manifest import (
    check_arrays,
    check_events,
    check_folders,
    check_launch,
    check_textures,
)
from .check_order import check_access_order, check_texel_order
from .check_outside import check_outside, check_outside_rows
from .reader import LaunchTrace, Trace
from .recorded import Finding, Recorded

Check: TypeAlias = Callable[[Recorded], Iterator[Finding]]

STAGES: tuple[tuple[tuple[str, Check], ...], ...] = (
    (
        ("instructions", check_pcs),
        ("instructions", check_basic_blocks),
        ("instructions", check_instructions),
    ),
    (
        ("patterns", check_patterns),
        ("paths", check_path_lists),
    ),
    (("paths", check_path_entries),),
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

That identifiers, blocks, warps and pcs are in range is checked by the reader, whenever it reads.
"""


def verify(trace: Trace) -> list[str]:
    """Return every broken promise of a trace, as sentences that begin with the place."""
    findings = [f"manifest: {finding}" for finding in check_events(trace.manifest)]
    findings += [f"folder: {finding}" for finding in check_folders(trace)]
    for launch in trace.launches:
        place = f"launch {launch.number} ({launch.launch.kernel})"
        findings += [f"{place}: {finding}" for finding in _verify_launch(trace, launch)]
    return findings


def _verify_launch(trace: Trace, launch: LaunchTrace) -> list[str]:
    found = [
        *check_launch(trace.manifest, launch.launch),
        *check_arrays(launch.launch),
        *check_textures(launch.launch),
        *check_kept(launch.launch),
        *check_outside(launch.launch),
    ]
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

"""Verify a trace against FORMAT.md: the list of checks in stages, and the checks of rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.errors import CutraceError
from . import check_control
from .check_launch import FAR
from .reader import LaunchTrace, Trace
from .recorded_tables import Finding, Flags, Ints, Recorded, column, lanes_of, report
from .row_filter import in_ranges, keeps_blocks, keeps_pcs
from .schema import (
    ACCESS_KINDS,
    BARRIERS,
    CLASSES,
    COLLISIONS,
    MOST_PARTS,
    TABLES,
    Event,
    Launch,
    Manifest,
    Space,
)
from .trace_folder import MANIFEST
from .unique import sorted_unique

_PART, _STEP = 23, 31
"""Bit positions of part and step in a key of 32 bits step, 8 bits part and 23 bits pc."""


def check_access_order(recorded: Recorded) -> Iterator[Finding]:
    """Check that steps of a warp never fall, and that the parts of a step are 0, 1, 2 ... of one
    instruction.
    """
    last = _Last()
    for first, rows in recorded.accesses():
        key, before, order = last.follow(rows, rows["part"])
        part = key >> _PART & MOST_PARTS
        opens = (before >> _STEP != key >> _STEP) & (part == 0)
        further = (before == key) & (part == MOST_PARTS)
        wrong = ~opens & ~further & (key - before != 1 << _PART)
        yield from _report_falling(key, before, order, first)
        text = "its part or pc does not follow from the warp's row before"
        yield from report(_in_file(wrong, order), text, first)


def check_texel_order(recorded: Recorded) -> Iterator[Finding]:
    """Check that steps of a warp never fall, and that a step's rows, one per texture, are of one
    instruction.
    """
    last = _Last()
    for first, rows in recorded.texels():
        key, before, order = last.follow(rows, np.zeros_like(rows["step"]))
        wrong = (before >> _STEP == key >> _STEP) & (before != key)
        yield from _report_falling(key, before, order, first)
        text = "its step is that of the warp's row before, but its pc is not"
        yield from report(_in_file(wrong, order), text, first)


def _report_falling(key: Ints, before: Ints, order: Ints, first: int) -> Iterator[Finding]:
    falls = before >> _STEP > key >> _STEP
    text = "its step is before that of the warp's row before"
    yield from report(_in_file(falls, order), text, first)


def _in_file(flags: Flags, order: Ints) -> Flags:
    """Return flags of rows sorted by `order`, in file order."""
    return flags[np.argsort(order)]


class _Last:
    """The key of each warp's last row so far, -1 for a warp without one."""

    def __init__(self) -> None:
        self._warps = np.full(1, -1)
        self._keys = np.full(1, -1)

    def follow(self, rows: dict[str, Any], part: Ints) -> tuple[Ints, Ints, Ints]:
        """Return each row's key, its warp's previous key, and the order that sorts rows by warp."""
        # A stable sort keeps the file order within a warp, which is the order under test. Step,
        # part and pc are packed into one integer, so that a single comparison orders them.
        order = np.argsort(rows["id"], kind="stable")
        warp = rows["id"][order]
        key = (rows["step"] << _STEP | part << _PART | rows["pc"] & (1 << _PART) - 1)[order]
        opens = np.diff(warp, prepend=-1) != 0
        before = np.where(opens, self._of(warp), np.roll(key, 1))
        self._update(warp, key)
        return key, before, order

    def _of(self, warps: Ints) -> Ints:
        place = np.searchsorted(self._warps, warps, "right") - 1
        return np.where(self._warps[place] == warps, self._keys[place], -1)

    def _update(self, warps: Ints, keys: Ints) -> None:
        """Store the last key of each warp."""
        newest_first = np.concatenate([self._warps, warps])[::-1]
        self._warps, index = np.unique(newest_first, return_index=True)
        self._keys = np.concatenate([self._keys, keys])[::-1][index]


def check_kept_rows(recorded: Recorded) -> Iterator[Finding]:
    """Check that rows of accesses are selected by `Kept`."""
    selection = recorded.launch.kept
    pcs = keeps_pcs(selection, recorded.instructions)
    for first, rows in recorded.accesses():
        bad = ~pcs[rows["pc"]]
        if selection.spaces:
            bad |= ~np.isin(rows["space"], [int(space) for space in selection.spaces])
        yield from _report(recorded, bad, rows["block"], rows["warp"], first)


def check_kept_texels(recorded: Recorded) -> Iterator[Finding]:
    """Check that rows of texels are selected by `Kept`."""
    pcs = keeps_pcs(recorded.launch.kept, recorded.instructions)
    for first, rows in recorded.texels():
        yield from _report(recorded, ~pcs[rows["pc"]], rows["block"], rows["warp"], first)


def check_kept_control(recorded: Recorded) -> Iterator[Finding]:
    """Check that rows of control are selected by `Kept`."""
    control = recorded.control
    bad = np.full(len(control["block"]), not recorded.launch.kept.control)
    yield from _report(recorded, bad, control["block"], control["warp"], 0)


def _report(
    recorded: Recorded, bad: np.ndarray, block: Ints, warp: Ints, first: int
) -> Iterator[Finding]:
    selection = recorded.launch.kept
    bad = (
        bad
        | ~keeps_blocks(selection, block)
        | ~in_ranges(warp, selection.warps)
        | (not selection.rows)
    )
    yield from report(bad, "the manifest says that it was left out", first)


_ALLOWED = {
    "space": frozenset({"", "const", "global", "local", "param", "shared", "tex"}),
    "class": frozenset(CLASSES),
    "access": frozenset({"", *ACCESS_KINDS}),
    "collision": frozenset({"", *COLLISIONS}),
}
"""Columns with a closed list of values."""


def check_instructions(recorded: Recorded) -> Iterator[Finding]:
    """Check that spaces and classes are known, a thread count has a barrier, a line number a
    file."""
    for row in recorded.instructions.to_pylist():
        pc, name = row["pc"], row["mnemonic"]
        for key, values in _ALLOWED.items():
            if row[key] not in values:
                yield Finding(f"`{name}` in a {key} `{row[key]}`", pc)
        if bool(row["access"]) != bool(row["reads"] | row["writes"]):
            yield Finding(f"`{name}` accesses memory without a state space, or the reverse", pc)
        if row["barrier"] is None and row["barrier_threads"] is not None:
            yield Finding(f"`{name}` counts threads of no barrier", pc)
        if row["barrier"] is not None and not -1 <= row["barrier"] < BARRIERS:
            yield Finding(f"`{name}` waits at barrier {row['barrier']} of {BARRIERS}", pc)
        if row["line"] and not row["file"]:
            yield Finding(f"`{name}` has line {row['line']} of no file", pc)
        if name.partition(".")[0] != row["opcode"]:
            yield Finding(f"`{name}` with opcode `{row['opcode']}`", pc)


def check_lanes_on(recorded: Recorded) -> Iterator[Finding]:
    """Check that lanes on are of predicated instructions that neither access memory nor branch,
    once each.
    """
    predicated = recorded.of_instructions("predicate") != ""
    opcode = recorded.of_instructions("opcode")
    counted = predicated & (recorded.of_instructions("bytes") == 0) & (opcode != "bra")
    keys = [np.empty(0, np.int64)]
    for batch in recorded.trace.lanes_on_batches():
        pc = column(batch, "pc")
        yield from report(~counted[pc], "its instruction is not predicated, or has rows of its own")
        keys.append(column(batch, "block") * len(counted) + pc)
    sums = np.concatenate(keys)
    if len(sorted_unique(sums)) != len(sums):
        yield Finding("a block has two sums for one pc")


_CHUNK = 1 << 16


def check_patterns(recorded: Recorded) -> Iterator[Finding]:
    """Check that a pattern has an active lane, and offset 0 for the lowest one and for inactive
    lanes.
    """
    active, offsets = recorded.patterns
    for start in range(0, len(active), _CHUNK):
        mask, off = active[start : start + _CHUNK], offsets[start : start + _CHUNK]
        on = lanes_of(mask)
        lowest = off[np.arange(len(off)), on.argmax(axis=1)]
        moved = np.count_nonzero(off * ~on, axis=1)
        yield from report(mask == 0, "no lane is active", start)
        yield from report(moved > 0, "an inactive lane has an offset", start)
        yield from report(lowest != 0, "the base is not the lowest active lane's", start)


def check_spaces(recorded: Recorded) -> Iterator[Finding]:
    """Check that spaces are of the enumeration, and that the instruction may access them."""
    allowed = recorded.of_instructions("reads") | recorded.of_instructions("writes")
    for first, rows in recorded.accesses():
        is_valid = (rows["space"] >= min(Space)) & (rows["space"] <= max(Space))
        yield from report(~is_valid, "an unknown space", first)
        named = allowed[rows["pc"]] >> np.where(is_valid, rows["space"], 0) & 1
        yield from report(
            is_valid & (named == 0), "not in a space that its instruction reaches", first
        )


def check_widths(recorded: Recorded) -> Iterator[Finding]:
    """Check that only instructions that move bytes access memory."""
    width = recorded.of_instructions("bytes")
    for first, rows in recorded.accesses():
        yield from report(width[rows["pc"]] == 0, "its instruction moves no bytes", first)


def check_access_lanes(recorded: Recorded) -> Iterator[Finding]:
    """Check that accessing lanes belong to threads of the block; pieces of a bulk copy do not."""
    active = recorded.patterns[0].astype(np.int64)
    is_bulk = recorded.of_instructions("access") == "bulk"
    for first, rows in recorded.accesses():
        beyond = active[rows["pattern"]] & ~recorded.lanes(rows["warp"])
        beyond[is_bulk[rows["pc"]]] = 0
        yield from report(beyond != 0, "lanes that the warp does not have", first)


def check_addresses(recorded: Recorded) -> Iterator[Finding]:
    """Check that every active lane's bytes are inside one array, or the block's or thread's memory;
    those of instructions with out-of-bounds accesses in the manifest, in mapped memory.
    """
    width = _least_bytes(recorded)
    strays = recorded.outside_lanes > 0
    for first, rows in recorded.accesses():
        for space in Space:
            windows = recorded.windows(space)
            indices = np.flatnonzero(rows["space"] == space)
            if windows is None or not len(indices):
                continue
            picked = {name: rows[name][indices] for name in ("base", "pattern")}
            bad = np.zeros(len(rows["space"]), bool)
            bad[indices] = _outside(recorded, picked, width[rows["pc"][indices]], windows)
            if space == Space.GLOBAL and strays.any():
                bad &= ~(strays[rows["pc"]] & _is_mapped(recorded, rows, width))
            yield from report(bad, f"outside every array of {space.name.lower()} memory", first)


def check_outside_rows(recorded: Recorded) -> Iterator[Finding]:
    """Check that each instruction has no more out-of-bounds lanes than the manifest states."""
    limits = recorded.outside_lanes
    width, windows = _least_bytes(recorded), recorded.windows(Space.GLOBAL)
    assert windows is not None
    counted = np.zeros_like(limits)
    for _, rows in recorded.accesses():
        indices = np.flatnonzero((rows["space"] == Space.GLOBAL) & (limits[rows["pc"]] > 0))
        pc, pattern = rows["pc"][indices], rows["pattern"][indices]
        inside = _lanes_inside(recorded, rows["base"][indices], pattern, width[pc], windows)
        outside = lanes_of(recorded.patterns[0][pattern]) & ~inside
        np.add.at(counted, pc, outside.sum(axis=1))
    for pc in np.flatnonzero(counted > limits).tolist():
        yield Finding(
            f"pc {pc}: {counted[pc]} lanes are outside of every array, but the manifest says "
            f"{limits[pc]}"
        )


def _is_mapped(recorded: Recorded, rows: dict[str, Any], width: Ints) -> Flags:
    return ~_outside(recorded, rows, width[rows["pc"]], recorded.mapped)


def _least_bytes(recorded: Recorded) -> Ints:
    """Return the least bytes that each instruction moves: one for a formatted store, and for the
    last piece of a row of a tensor.
    """
    formatted = recorded.of_instructions("operation") == "formatted"
    formatted |= recorded.of_instructions("access") == "bulk"
    return np.where(formatted, 1, recorded.of_instructions("bytes"))


def _outside(
    recorded: Recorded, rows: dict[str, Any], width: Ints, windows: tuple[Ints, Ints]
) -> Flags:
    """Return whether any lane of a row is out of bounds: by whole rows first, by lanes where
    needed.
    """
    low, high = recorded.extents
    active = recorded.patterns[0]
    base = np.minimum(rows["base"], np.uint64(FAR)).astype(np.int64)
    pattern = rows["pattern"]
    bad = ~_inside(base + low[pattern], base + high[pattern] + width, windows)
    # A row whose extent spans two arrays may still have every lane inside one of them; only these
    # few rows are expanded to 32 lanes, in chunks to bound memory.
    doubtful = np.flatnonzero(bad)
    for some in np.split(doubtful, range(_CHUNK, len(doubtful), _CHUNK)):
        inside = _lanes_inside(recorded, base[some], pattern[some], width[some], windows)
        bad[some] = ~(inside | ~lanes_of(active[pattern[some]])).all(axis=1)
    return bad


def _lanes_inside(
    recorded: Recorded, base: Ints, pattern: Ints, width: Ints, windows: tuple[Ints, Ints]
) -> Flags:
    """Return (n, 32): whether the bytes of each lane, active or not, are inside one window."""
    low = np.minimum(base, np.uint64(FAR)).astype(np.int64) if base.dtype.kind == "u" else base
    begin = low[:, None] + recorded.patterns[1][pattern]
    return _inside(begin, begin + width[:, None], windows)


def _inside(begin: npt.NDArray[Any], end: npt.NDArray[Any], windows: tuple[Ints, Ints]) -> Flags:
    starts, ends = windows
    if not len(starts):
        return np.zeros(begin.shape, bool)
    place = np.searchsorted(starts, begin, "right") - 1
    return (place >= 0) & (end <= ends[np.maximum(place, 0)])


def check_texels(recorded: Recorded) -> Iterator[Finding]:
    """Check that samples have active lanes, all of them in the warp, and corner 0 for inactive
    lanes.
    """
    for first, rows in recorded.texels():
        active = rows["active"]
        off = ~np.repeat(lanes_of(active), 4, axis=1)
        yield from report(active == 0, "no lane is active", first)
        beyond = active & ~recorded.lanes(rows["warp"])
        yield from report(beyond != 0, "lanes that the warp does not have", first)
        yield from report(
            (rows["corner"] * off).any(axis=1), "an inactive lane has a corner", first
        )


Check: TypeAlias = Callable[[Recorded], Iterator[Finding]]

STAGES: tuple[Mapping[str, Sequence[Check]], ...] = (
    {"instructions": [check_instructions]},
    {"patterns": [check_patterns], "paths": [check_control.check_path_entries]},
    {
        "lanes_on": [check_lanes_on],
        "control": [
            *(check_control.check_control_lanes, check_control.check_control_steps),
            *(check_control.check_all_warps_ran, check_kept_control),
        ],
        "accesses": [
            *(check_spaces, check_widths, check_kept_rows),
            *(check_access_lanes, check_access_order),
            *(check_addresses, check_outside_rows),
        ],
        "texels": [check_texels, check_kept_texels, check_texel_order],
    },
    {"accesses": [check_control.check_accesses_ran], "texels": [check_control.check_texels_ran]},
)
"""Checks of a launch in stages. A stage relies on the earlier ones: it is skipped if one of them
failed.

The reader itself checks, on every read, that identifiers, blocks, warps and pcs are in range, that
instructions have their pcs and that the lists of a path have one length; and all of the manifest
except events.
"""


MOST_ALIKE = 100


def verify(trace: Trace) -> list[str]:
    """Return violations of the format, as sentences that begin with the place: all of them, but at
    most MOST_ALIKE each of the manifest's events and of the folder.
    """
    findings = [f"manifest: {finding}" for finding in _some(check_events(trace.manifest))]
    findings += [f"folder: {finding}" for finding in _some(check_folders(trace))]
    for launch in trace.launches:
        place = f"launch {launch.number} ({launch.launch.kernel})"
        findings += [f"{place}: {finding}" for finding in _verify_launch(launch)]
    return findings


def _some(findings: Iterator[str]) -> Iterator[str]:
    """Yield the first findings, and the number of the others."""
    yield from islice(findings, MOST_ALIKE)
    if remainder := sum(1 for _ in findings):
        yield f"and {remainder} more"


def _verify_launch(launch: LaunchTrace) -> list[str]:
    findings = list(check_warps(launch.launch))
    recorded = Recorded(launch)
    for stage in STAGES:
        if findings:
            break
        for table, checks in stage.items():
            for check in checks:
                findings += _run(check, recorded, table)
    return list(dict.fromkeys(findings))


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


_DIRECTIONS = {"copy": ("HtoD", "DtoH", "DtoD"), "set": ("",), "launch": ("",), "library": ("",)}
WARPS = 1 << 32
"""Maximum warps of a launch: row checks number them with 32 bits; no executed launch has more."""


def check_events(manifest: Manifest) -> Iterator[str]:
    """Check that launch numbers appear once each, in order; kinds, directions and sizes are
    known."""
    numbers = [event.launch for event in manifest.events if event.kind == "launch"]
    if numbers != list(range(len(manifest.launches))):
        some = f"{numbers[:20]}{' and more' * (len(numbers) > 20)}"
        yield f"events launch {some}, but there are {len(manifest.launches)} launches"
    for index, event in enumerate(manifest.events):
        yield from (f"event {index}: {finding}" for finding in _check_event(event))


def _check_event(event: Event) -> Iterator[str]:
    if event.kind not in _DIRECTIONS:
        yield f"kind `{event.kind}`, expected {', '.join(_DIRECTIONS)}"
    elif event.direction not in _DIRECTIONS[event.kind]:
        yield f"direction `{event.direction}` of a {event.kind}"
    if event.bytes < 0:
        yield f"{event.bytes} bytes"
    if event.kind != "launch" and event.launch != -1:
        yield f"a {event.kind} with launch {event.launch}"
    if bool(event.name) != (event.kind == "library"):
        yield f"a {event.kind} with the name `{event.name}`"


def check_folders(trace: Trace) -> Iterator[str]:
    """Check that the folder holds the manifest, one folder per launch with its tables, and nothing
    else.
    """
    expected = {MANIFEST, *(str(launch.number) for launch in trace.launches)}
    for path in sorted(trace.path.iterdir()):
        if path.name not in expected:
            yield f"{path.name} is no part of the trace"
    tables = {f"{name}.arrow" for name in TABLES}
    for launch in trace.launches:
        strange = sorted({path.name for path in launch.folder.iterdir()} - tables)
        yield from (f"{launch.number}/{name} is no part of the trace" for name in strange)


def check_warps(launch: Launch) -> Iterator[str]:
    """Check that the launch has few enough warps for the row checks."""
    if launch.blocks * launch.warps >= WARPS:
        yield f"{launch.blocks} blocks of {launch.warps} warps: too many to check their rows"

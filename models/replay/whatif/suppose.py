"""What-if traces: launches with arrays padded or realigned, the code unchanged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....errors import CutraceError, nearest
from ....lazy_dataclass import dataclass
from ....traces.reader import LaunchTrace, Trace
from ....traces.schema import Array, Launch
from .change import Alignment, Changes, Pad, Wish, read_changes
from .layout import Layout, Rows, lay_out
from .relocate import MovedLaunch
from .usage import Usage, read_usage


def suppose(trace: Trace, pad: Mapping[str, Wish] = {}, align: Mapping[str, Wish] = {}) -> Trace:
    """Return a trace as if arrays had longer rows, or began at other addresses.

    `pad` maps names to `N` or `"ROW+N"` elements, `align` to `BYTES` or `"BYTES+BEYOND"`. Raises
    `CutraceError` for an array that no launch has, and where no launch tells how long rows are.
    """
    changes = read_changes(pad, align)
    if not changes.names():
        return trace
    return replace(trace, launches=suppose_launches(trace.launches, changes, f"{trace.label}: "))


def suppose_launches(
    launches: Sequence[LaunchTrace], changes: Changes, where: str = ""
) -> tuple[LaunchTrace, ...]:
    """Return launches with these changes; `where` begins the message about an unknown array."""
    known = sorted({array.name for one in launches for array in one.launch.arrays})
    for name in sorted(changes.names() - {*known}):
        raise CutraceError(f"{where}no array `{name}` to change{nearest(name, known)}")
    plans = [_plan(launch, changes) for launch in launches]
    for name, wish in changes.pads.items():
        if not any(name in plan.rows for plan in plans):
            raise CutraceError(_no_rows(wish, plans))
    return tuple(_move(plan) for plan in plans)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The changes of one launch. `lacking` are arrays whose row length is unknown."""

    trace: LaunchTrace
    used: Mapping[str, Usage]
    rows: Mapping[str, Rows]
    pads: Mapping[str, Pad]
    alignments: Mapping[str, Alignment]
    lacking: tuple[str, ...]


def _plan(trace: LaunchTrace, changes: Changes) -> _Plan:
    own = {array.name: array for array in trace.launch.arrays}
    used = read_usage(trace) if changes.names() & own.keys() else {}
    pads = {n: p for n, p in changes.pads.items() if n in own and used[n].widest}
    found = {name: _find_row(pad, own[name], used[name]) for name, pad in pads.items()}
    rows = {
        name: Rows(row, pads[name].elements * _element(own[name], used[name]))
        for name, row in found.items()
        if row is not None
    }
    alignments = {n: a for n, a in changes.alignments.items() if n in own}
    return _Plan(trace, used, rows, pads, alignments, tuple(pads.keys() - rows.keys()))


def _find_row(pad: Pad, array: Array, used: Usage) -> int | None:
    """Return the bytes of a row: as the user says, as the array's shape has it, or by strides."""
    if pad.row is not None:
        return pad.row * _element(array, used)
    if array.pitch:
        return array.pitch
    if len(array.shape) > 1:
        return array.shape[-1] * array.itemsize
    return used.find_row(array)


def _element(array: Array, used: Usage) -> int:
    """Return the bytes of an element; where the array does not say, as instructions take it."""
    return array.itemsize or used.element


def _no_rows(pad: Pad, plans: list[_Plan]) -> str:
    """Say why an array cannot be padded."""
    uses = [plan.used[pad.array] for plan in plans if pad.array in plan.pads]
    if not uses:
        return f"{pad}: no launch accesses `{pad.array}`"
    strides = sorted({stride for used in uses for stride in used.strides if stride > used.widest})
    seen = f"strides of {', '.join(map(str, strides[:6]))} bytes" if strides else "no stride"
    return (
        f"{pad}: its accesses do not tell how long a row of `{pad.array}` is ({seen} between"
        f" lanes); say it in elements, --pad {pad.array}=ROW+{pad.elements}"
    )


def _move(plan: _Plan) -> LaunchTrace:
    """Return a launch as planned."""
    trace = plan.trace
    if not plan.rows and not plan.alignments:
        return replace(trace, supposed=(*trace.supposed, *_tell(plan, None)))
    layout = lay_out(trace.launch, plan.rows, plan.alignments)
    _check_alignment(plan, layout)
    return MovedLaunch(
        trace.number,
        _launch(trace.launch, layout),
        trace.folder,
        trace.stamps,
        (*trace.supposed, *_tell(plan, layout)),
        before=trace,
        layout=layout,
    )


def _launch(launch: Launch, layout: Layout) -> Launch:
    """Return a launch with its arrays as laid out, and the shared memory that they need."""
    declared, dynamic = layout.added
    return replace(
        launch,
        arrays=layout.arrays,
        shared_static=launch.shared_static + declared,
        shared_dynamic=launch.shared_dynamic + dynamic,
        resources=tuple(
            replace(r, shared_bytes=r.shared_bytes + declared) for r in launch.resources
        ),
    )


def _check_alignment(plan: _Plan, layout: Layout) -> None:
    """Raise `CutraceError` where a wide access would no longer be aligned: devices fault there."""
    for old, new in zip(plan.trace.launch.arrays, layout.arrays, strict=True):
        widest = plan.used[old.name].widest or 1
        wish = plan.pads.get(old.name)
        if wish and old.name in plan.rows and plan.rows[old.name].pad % widest:
            elements = widest // _element(old, plan.used[old.name])
            raise CutraceError(
                f"{wish}: `{old.name}` is accessed {widest} bytes at a time, and rows must stay"
                f" aligned to that; pad by a multiple of {elements}"
            )
        if (new.offset - old.offset) % widest:
            raise CutraceError(
                f"{plan.alignments[old.name]}: `{old.name}` is accessed {widest} bytes at a time,"
                " and must stay aligned to that"
            )


def _tell(plan: _Plan, layout: Layout | None) -> Iterator[str]:
    """Yield what the what-if changes."""
    for name, rows in plan.rows.items():
        yield f"what-if: rows of `{name}` padded from {rows.row} to {rows.row + rows.pad} bytes"
    for name in plan.lacking:
        yield f"`{name}` is as recorded: accesses of this launch do not tell how long its rows are"
    for name, alignment in plan.alignments.items():
        past = f"{alignment.beyond} bytes past " if alignment.beyond else "at "
        yield f"what-if: `{name}` begins {past}a multiple of {alignment.bytes} bytes"
    if layout and any(layout.added):
        yield f"what-if: {sum(layout.added)} bytes more of shared memory a block"

"""Occupancy as a document: a paragraph and the limits per launch and device, and curves."""

from collections.abc import Iterator, Sequence
from functools import partial

from ...models.analyses.occupancy import Occupancy
from ..report.document import Block, Document, Figure, Next, Note, Section, Table, row
from ..report.view import View
from ..text.launch_text import NO_LAUNCHES
from ..text.svg import count_bytes
from .curve_svg import STYLE, draw_curve
from .occupancy import WORDS, Advice, Curve, Resident, share

BAR, ROOMY = 20, 80
"""Width of a bar, and of a terminal that has room for it."""


def occupancy_document(
    residents: Sequence[Resident], curves: Sequence[Sequence[Curve]], view: View
) -> Document:
    """Return the document of some launches and devices, each with its curves, if any."""
    return Document(
        view,
        lambda: _sections(residents, curves, view),
        lambda: (COLUMNS, map(_values, residents)),
        name="occupancy",
    )


COLUMNS = {
    **{"heading": str, "device": str, "threads": int, "blocks": int, "warps": int},
    **{"most_warps": int, "occupancy": float, "limited_by": str, "refusal": str},
}


def _values(resident: Resident) -> tuple[object, ...]:
    result = resident.occupancy
    return (
        *(resident.heading, resident.device, result.need.threads, result.blocks),
        *(result.active_warps, result.max_warps, result.active_warps / result.max_warps),
        *(", ".join(result.limited_by), result.refusal),
    )


def _sections(
    residents: Sequence[Resident], curves: Sequence[Sequence[Curve]], view: View
) -> Iterator[Section]:
    if view.first:
        yield [Note(view.first, hang=HANG)]
    if not residents:
        yield [Note(NO_LAUNCHES)]
        return
    heading = ""
    for resident, drawn in zip(residents, curves, strict=True):
        if resident.heading != heading:
            heading = resident.heading
            yield [Note(heading, hang=HANG, is_code=True)]
        yield [*_resident(resident)]
        bar = BAR if view.width is None or view.width >= ROOMY else BAR // 2
        for curve in drawn:
            blocks = tuple(_curve(curve, resident.occupancy, bar))
            yield [Figure(partial(_draw, curve, resident.occupancy.max_warps), blocks)]
    if view.last:
        yield [Next(view.last)]


HANG = "  "


def _resident(resident: Resident) -> Iterator[Block]:
    occupancy = resident.occupancy
    yield Note(
        f"{resident.device}: {_blocks(occupancy.blocks)} of {occupancy.need.threads} threads"
        f" on an SM, {occupancy.active_warps} of {occupancy.max_warps} warps,"
        f" {share(occupancy, occupancy.active_warps)},"
        f" limited by {', '.join(occupancy.limited_by)}",
        hang=HANG,
    )
    if occupancy.refusal:
        yield Note(occupancy.refusal, is_whole=True)
    if occupancy.registers_from:
        registers = "unknown" if occupancy.registers is None else occupancy.registers
        yield Note(f"registers a thread: {registers} ({occupancy.registers_from})")
    rows = []
    for name, capacity in occupancy.limits.items():
        remarks = ["limits"] if capacity == occupancy.blocks else []
        if name == "shared" and (room := _room_in_carveout(resident)) is not None:
            least = count_bytes(occupancy.carveout)
            remarks.append(
                f"{_blocks(room)} in the {least} that the driver sets aside (Nsight Compute's"
                " limit)"
            )
        rows.append(row(name, _blocks(capacity), "; ".join(remarks)))
    yield Table(("room for", ""), tuple(rows), corner="limit", numbers=False)
    if resident.requested_blocks is not None:
        yield Note(_verdict(resident), hang=HANG)
    yield Note(f"advice: {_advice(resident.advice)}", hang=HANG)


def _room_in_carveout(resident: Resident) -> int | None:
    """Return the blocks for which the carveout has room; None if no shared memory is set aside.

    The other limit is that of the largest carveout, which a launch that needs it gets.
    """
    limits, occupancy = resident.limits, resident.occupancy
    needed = occupancy.need.shared + limits.shared_reserved
    allocated = -(-needed // limits.shared_unit) * limits.shared_unit
    room = occupancy.carveout // allocated if allocated else None
    return room if room and room != occupancy.limits.get("shared") else None


def _advice(advice: Advice) -> str:
    """Return the block with which an SM holds more warps, or that there is none."""
    occupancy = advice.occupancy
    if not occupancy.blocks:
        return "no block size fits; use fewer registers a thread or less shared memory"
    need = occupancy.need
    shared = f" and {need.shared} bytes of shared memory" if need.shared else ""
    grid = f"; {_blocks(advice.blocks)} for the grid" if advice.blocks else ""
    if not advice.is_better:
        return f"stay at {need.threads} threads a block, no size holds more warps on an SM{grid}"
    warps = (
        f"{occupancy.active_warps} of {occupancy.max_warps} warps,"
        f" {share(occupancy, occupancy.active_warps)}"
    )
    return f"{need.threads} threads{shared} a block: {warps}{grid}"


def _verdict(resident: Resident) -> str:
    """Return whether the requested blocks fit, and every limit that forbids it."""
    many = _blocks(resident.requested_blocks or 0)
    if not resident.too_few:
        return f"{many} at once: possible"
    limits = (f"{name} (room for {resident.occupancy.limits[name]})" for name in resident.too_few)
    return f"{many} at once: not possible, limited by {', '.join(limits)}"


def _draw(curve: Curve, most: int) -> str:
    return f"<style>{STYLE}</style>{draw_curve(curve, most)}"


def _curve(curve: Curve, occupancy: Occupancy, width: int) -> Iterator[Block]:
    """Yield a row per stretch; the present value is marked."""
    yield Note(f"against {WORDS[curve.field]}")
    rows = []
    for part in curve.stretches:
        is_here = curve.here is not None and part.first <= curve.here <= part.last
        values = str(part.first) if part.first == part.last else f"{part.first} to {part.last}"
        filled = width * part.warps // occupancy.max_warps
        bar = "#" * filled + "." * (width - filled)
        mark = "  <-" if is_here else ""
        rows.append(row(values, part.warps, bar, ", ".join(part.limited_by) + mark))
    yield Table(("warps", "", "limited by"), tuple(rows), numbers=False)


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number} blocks"

"""Occupancy as text for terminals and pipes: limits, advice, and curves as bars."""

from collections.abc import Iterator, Sequence

from ...models.analyses.occupancy import Occupancy
from ..text.layout import align, wrapped
from .occupancy import Advice, Curve, Resident

BAR, ROOMY = 20, 80
"""Width of a bar, and of a terminal that has room for it."""
WORDS = {
    "threads": "threads a block",
    "registers": "registers a thread",
    "shared": "bytes of shared memory a block",
}


def render(
    residents: Sequence[Resident],
    curves: Sequence[Sequence[Curve]],
    width: int | None = None,
    first: str = "",
    last: str = "",
) -> str:
    """Return a paragraph per launch and device, each followed by its curves, if any."""
    lines = [*wrapped(first, width), ""] if first else []
    heading = ""
    for resident, drawn in zip(residents, curves, strict=True):
        if resident.heading != heading:
            heading = resident.heading
            lines += [*wrapped(heading, width), ""]
        lines += [*_resident(resident, width), ""]
        for curve in drawn:
            bar = BAR if width is None or width >= ROOMY else BAR // 2
            lines += [*_curve(curve, resident.occupancy, bar), ""]
    return "\n".join((*lines, f"next: {last}" if last else "")).rstrip("\n") + "\n"


def share(occupancy: Occupancy, warps: int) -> str:
    """Format warps as a percentage of those that an SM holds.

    >>> from cutrace.models.analyses.occupancy import Need
    >>> share(Occupancy(Need(32), 48), 16)
    '33.3 %'
    """
    return f"{100 * warps / occupancy.max_warps:.1f}".removesuffix(".0") + " %"


def resident_text(occupancy: Occupancy) -> str:
    """Return how many blocks fit on an SM, the limit, and the source of the register count.

    >>> from cutrace.models.analyses.occupancy import Need
    >>> resident_text(Occupancy(Need(32, 16), 48, {"blocks": 8, "warps": 48}, "given"))
    '8 blocks fit on an SM, limited by blocks, with 16 registers a thread (given)'
    """
    registers = "an unknown number of" if occupancy.registers is None else occupancy.registers
    fit = "1 block fits" if occupancy.blocks == 1 else f"{occupancy.blocks} blocks fit"
    return (
        f"{fit} on an SM, limited by {', '.join(occupancy.limited_by)},"
        f" with {registers} registers a thread ({occupancy.registers_from})"
    )


def _resident(resident: Resident, width: int | None) -> Iterator[str]:
    occupancy = resident.occupancy
    limited = ", ".join(occupancy.limited_by)
    yield from wrapped(
        f"{resident.device}: {_blocks(occupancy.blocks)} of {occupancy.need.threads} threads"
        " on an SM,"
        f" {occupancy.active_warps} of {occupancy.max_warps} warps,"
        f" {share(occupancy, occupancy.active_warps)},"
        f" limited by {limited}",
        width,
    )
    if resident.occupancy.refusal:
        yield resident.occupancy.refusal
    if occupancy.registers_from:
        registers = "unknown" if occupancy.registers is None else occupancy.registers
        yield f"registers a thread: {registers} ({occupancy.registers_from})"
    rows = [("limit", "room for", "")]
    rows += [
        (name, _blocks(capacity), "limits" if capacity == occupancy.blocks else "")
        for name, capacity in occupancy.limits.items()
    ]
    yield from align(rows)
    if resident.requested_blocks is not None:
        yield from wrapped(_verdict(resident), width)
    yield from wrapped(f"advice: {_advice(resident.advice)}", width)


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


def _curve(curve: Curve, occupancy: Occupancy, width: int) -> Iterator[str]:
    """Yield a row per stretch; the present value is marked."""
    yield f"against {WORDS[curve.field]}"
    rows = [("", "warps", "", "limited by")]
    for part in curve.stretches:
        is_here = curve.here is not None and part.first <= curve.here <= part.last
        values = str(part.first) if part.first == part.last else f"{part.first} to {part.last}"
        filled = width * part.warps // occupancy.max_warps
        bar = "#" * filled + "." * (width - filled)
        mark = "  <-" if is_here else ""
        rows.append((values, str(part.warps), bar, ", ".join(part.limited_by) + mark))
    yield from align(rows)


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number} blocks"

"""Sentences and formatted numbers shared by the report formats for people."""

from ..base.sanitize import one_line
from .counting.vocabulary import OURS
from .sheet import Block, Row, Section, Sheet
from .text.number import bracket
from .view import View

PTX_IS_NOT_SASS = (
    "PTX is not SASS: the assembler merges, unrolls, predicates and removes instructions, so"
    " counts of instructions, branches and local accesses may differ from a chip's."
)

IN_FULL = frozenset({"cuda-profiler"})
"""Vocabularies whose zeros are shown."""
FEW = 8
"""Maximum number of zero counters of other vocabularies that are named; beyond it they are
counted."""


def estimate(row: Row, device: int) -> str:
    """Return a table cell: a formatted value, with its interval in brackets if it has one."""
    return bracket(row.values[device], row.interval(device), row.counter)


def title(block: Block) -> str:
    """Return the line, array or instruction of a block as text; empty for the whole launch."""
    key = block.key
    if "array" in key:
        return f"array {key['array']}"
    place = f"{key['file']}:{key['line']}" if key.get("line") else "no source line"
    if "pc" in key:
        return f"pc {key['pc']}  {key['ptx']}  ({place})"
    return f"{place}  {str(key['text']).strip()}" if key else ""


def is_folded(row: Row, section: Section, view: View) -> bool:
    """Return whether a row is folded: no device has the counter, or `zeros` names it.

    The first profiler's few counters are always shown in full, and so are counters requested by
    name.
    """
    if view.counters:
        return False
    return row.is_empty or (row.is_zero and section.vocabulary not in IN_FULL)


def zeros(sheet: Sheet, view: View) -> str:
    """Return a sentence with the names of all folded counters that are zero on every device.

    Of NVIDIA's vocabularies, which are large and overlap with cutrace's, only the number is given.
    """
    counters: dict[str, list[str]] = {}
    for block in sheet.blocks:
        for section in block.sections:
            folded = [r for r in section.rows if r.is_zero and is_folded(r, section, view)]
            counters.setdefault(section.vocabulary, []).extend(r.counter.name for r in folded)
    named = [name for vocabulary, names in counters.items() if vocabulary == OURS for name in names]
    for vocabulary, names in counters.items():
        if vocabulary != OURS and len(names) > FEW:
            named.append(f"{len(names)} counters of {vocabulary}")
        elif vocabulary != OURS:
            named += names
    return f"0 on every device: {', '.join(named)}" if named else ""


def absent(sheet: Sheet, view: View) -> str:
    """Return a sentence on the requested counters that no device has."""
    if not view.counters or all(sheet.refusals):
        return ""
    rows = [row for block in sheet.blocks for part in block.sections for row in part.rows]
    has = {row.counter.name for row in rows if not row.is_empty}
    lacks = dict.fromkeys(row.counter.name for row in rows if row.counter.name not in has)
    hints = [f"{name} (`cutrace counters {name}` says which have it)" for name in lacks]
    return f"not counted on {', '.join(sheet.devices)}: {', '.join(hints)}" if hints else ""


def times(sheet: Sheet) -> list[str]:
    """Return the time of a launch on each device that can run it, a sentence each."""
    pairs = [(d, text) for d, text in zip(sheet.devices, sheet.times, strict=True) if text]
    return [f"{device}: {text}" if len(sheet.devices) > 1 else text for device, text in pairs]


def costs(sheet: Sheet) -> list[str]:
    """Return the costliest lines of each device: place and text, then the share of the cost."""
    hotspots: dict[tuple[str, int, str], dict[str, list[str]]] = {}
    for device, top in zip(sheet.devices, sheet.costliest, strict=True):
        if top is not None:
            shares = hotspots.setdefault((top.file, top.line, top.text), {})
            shares.setdefault(f"{100 * top.share:.0f} % of the {top.what}", []).append(device)
    return [
        line
        for (file, number, text), shares in hotspots.items()
        for line in (
            one_line(f"costs most: {file}:{number}  {text}"),
            *(f"  {share} on {', '.join(devices)}" for share, devices in shares.items()),
        )
    ]

"""A comparison as a document: a table per device and launch or line, with the rows that differ."""

from collections.abc import Iterator

from ...base.sanitize import one_line
from ..report.document import BEST, Block, Document, Next, Note, Row, Section, Table
from ..report.view import View
from .comparison import Comparison, LaunchComparison

FORMAT = "cutrace-comparison-2"
LEGEND = f"{BEST} is the best of its row"
NO_DIFFERENCE = "no counter differs"
COLUMNS = (
    *("device", "launch", "vocabulary", "counter", "unit", "variant", "place"),
    *("value", "difference", "ratio", "best"),
)


def comparison_document(comparison: Comparison, view: View) -> Document:
    """Return the document of a comparison."""
    return Document(
        view,
        lambda: _sections(comparison, view),
        lambda: (COLUMNS, _values(comparison)),
        lambda: _fields(comparison),
    )


def _sections(comparison: Comparison, view: View) -> Iterator[Section]:
    if view.first:
        yield [Note(view.first, hang=HANG)]
    equal_count = 0
    for table in comparison.tables:
        rows = tuple(row for row in table.rows if _is_shown(row, view))
        if not rows and table.places and not any(table.refusals):
            equal_count += 1
            continue
        heading = [*_heading(comparison, table)]
        if rows:
            yield heading
            yield [Table(comparison.variants, rows, "", "counter", baseline=comparison.baseline)]
        else:
            equal = [] if all(table.refusals) else [Note(NO_DIFFERENCE, "  ", HANG)]
            yield [*heading, *equal]
    if equal_count:
        yield [Note(f"{equal_count} more line{'s' * (equal_count > 1)}: {NO_DIFFERENCE}")]
    if same := _same(comparison, view):
        yield [Note(same, hang=HANG)]
    rows = tuple(row for table in comparison.tables for row in table.rows)
    has_best = any(cell.is_best for row in rows for cell in row.cells)
    notes = (*comparison.notes, *((LEGEND,) if has_best else ()))
    yield [*(Note(text, hang=HANG) for text in notes), Next(view.last)]


HANG = "  "


def _heading(comparison: Comparison, table: LaunchComparison) -> Iterator[Block]:
    """Yield the device, each variant's launch or line, and refusals."""
    if table.places:
        several = len(comparison.launches) > 1 and table.launch is not None
        launch = f", launch {table.launch}" if several else ""
        yield Note(one_line(f"{table.device}{launch}  {table.text}"), is_whole=True, is_code=True)
    else:
        number = "all launches" if table.launch is None else f"launch {table.launch}"
        yield Note(f"{table.device}, {number}", is_code=True)
    for index, variant in enumerate(comparison.variants):
        if table.refusals[index]:
            yield Note(f"{variant}: {table.refusals[index]}", "  ", HANG, is_code=True)
        elif table.places:
            place = table.places[index] or "not executed"
            yield Note(one_line(f"{variant}: {place}"), "  ", is_whole=True, is_code=True)
        elif launch := comparison.launches[table.launch][index]:
            yield Note(f"{variant}: {launch}", "  ", HANG, is_code=True)
            if table.limits and table.limits[index]:
                yield Note(table.limits[index], f"    {' ' * len(variant)}", HANG, is_code=True)
    if table.verdict:
        baseline = comparison.variants[comparison.baseline]
        yield Note(table.verdict.tell(comparison.variants, baseline), "  ", HANG, is_code=True)


def _is_shown(row: Row, view: View) -> bool:
    """Return whether a row has a difference, or was selected by name."""
    return bool(view.counters) or len({cell.value for cell in row.cells}) > 1


def _same(comparison: Comparison, view: View) -> str:
    """Return the counters that are equal for all variants in all tables."""
    rows = [row for table in comparison.tables for row in table.rows]
    shown = {row.name for row in rows if _is_shown(row, view)}
    same = {row.name for row in rows if row.name not in shown and row.cells[0].value}
    names = [name for name in dict.fromkeys(row.name for row in rows) if name in same]
    return f"the same in all variants: {', '.join(names)}" if names else ""


def _values(comparison: Comparison) -> Iterator[tuple[object, ...]]:
    """Yield every value with the columns of COLUMNS."""
    for table in comparison.tables:
        for row in table.rows:
            assert row.counter
            for index, cell in enumerate(row.cells):
                place = table.places[index] if table.places else ""
                yield (
                    *(table.device, table.launch, row.counter.vocabulary, row.name),
                    *(row.counter.unit, comparison.variants[index], place),
                    *(cell.value, cell.difference, cell.ratio, cell.is_best),
                )


def _fields(comparison: Comparison) -> dict[str, object]:
    """Return the comparison as one object; an absent value is null."""
    return {
        "format": FORMAT,
        "variants": list(comparison.variants),
        "baseline": comparison.variants[comparison.baseline],
        "verdicts": list(_verdicts(comparison)),
        "values": [dict(zip(COLUMNS, row, strict=True)) for row in _values(comparison)],
        "notes": list(comparison.notes),
    }


def _verdicts(comparison: Comparison) -> Iterator[dict[str, object]]:
    """Yield the comparison of times of each table; `ratio` is the baseline's time over the
    variant's, null where there is no estimate.
    """
    baseline = comparison.variants[comparison.baseline]
    for table in comparison.tables:
        if one := table.verdict:
            both = one.difference
            yield {
                "device": table.device,
                "launch": table.launch,
                "variant": comparison.variants[one.variant],
                "verdict": both.verdict if both else None,
                "ratio": both.ratio if both else None,
                "interval": [both.low, both.high] if both else None,
                "bounds_ns": [bound.ns for bound in one.bounds] if one.bounds else None,
                "text": one.tell(comparison.variants, baseline),
            }

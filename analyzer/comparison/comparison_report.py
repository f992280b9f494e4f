"""A comparison as text, CSV, JSON and Markdown: one function per format, selected by FORMATS."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...base.errors import CutraceError, nearest
from ...base.sanitize import one_line
from ..counting.evaluate import Value
from ..text.layout import GAP, align, csv_text, markdown_row, widths, wrapped
from ..text.number import number
from ..view import View
from .comparison import Cell, Comparison, Row, Table, ratio_text

FORMAT = "cutrace-comparison-2"
BEST = "*"
LEGEND = f"{BEST} is the best of its row"
NO_DIFFERENCE = "  no counter differs"
COLUMNS = (
    *("device", "launch", "vocabulary", "counter", "unit", "variant", "place"),
    *("value", "difference", "ratio", "best"),
)


def render(comparison: Comparison, format: str, view: View) -> str:
    """Render in one of FORMATS; raise `CutraceError` for an unknown one."""
    check_format(format)
    return FORMATS[format](comparison, view)


def check_format(name: str) -> None:
    """Raise `CutraceError` for an unknown format."""
    if name not in FORMATS:
        raise CutraceError(
            f"no format {name!r}{nearest(name, FORMATS)}; there are {', '.join(FORMATS)}"
        )


def render_table(comparison: Comparison, view: View) -> str:
    """Render plain text.

    If the table is too wide, render a block per variant against the baseline; if that is too wide,
    omit the differences.
    """
    lines = [*_wrapped(view.first, view), ""] if view.first else []
    every = range(len(comparison.variants))
    equal_count = 0
    for table in comparison.tables:
        rows = [*_entries(comparison, table, every, view)]
        if len(rows) == 1 and table.places and not any(table.refusals):
            equal_count += 1
            continue
        head = [*_heading(comparison, table, view)]
        if len(rows) == 1:
            lines += [*head, *([] if all(table.refusals) else [NO_DIFFERENCE]), ""]
            continue
        lines += [*head, ""]
        if _fits(rows, view):
            lines += [*align(rows, numbers=True), ""]
            continue
        for other in (n for n in every if n != comparison.baseline):
            pair = (comparison.baseline, other)
            rows = [*_entries(comparison, table, pair, view)]
            if not _fits(rows, view):
                rows = [(*row[:-2], row[-1]) for row in rows]
            lines += [*align(rows, numbers=True), ""]
    if equal_count:
        lines += [
            f"{equal_count} more line{'s' * (equal_count > 1)}:{NO_DIFFERENCE.removeprefix(' ')}",
            "",
        ]
    if same := _same(comparison, view):
        lines += [*_wrapped(same, view), ""]
    for note in comparison.notes:
        lines += _wrapped(note, view)
    if _has_best(comparison):
        lines += _wrapped(LEGEND, view)
    return "\n".join((*lines, f"next: {view.last}")) + "\n"


def _fits(rows: Sequence[tuple[str, ...]], view: View) -> bool:
    """Return whether a table fits the terminal, if that has a width."""
    columns = widths(rows)
    return view.width is None or sum(columns) + len(GAP) * (len(columns) - 1) <= view.width


def render_csv(comparison: Comparison, view: View) -> str:
    """Render one row per value, tidy, with a header."""
    return csv_text([COLUMNS, *(tuple(record.values()) for record in _records(comparison))])


def render_json(comparison: Comparison, view: View) -> str:
    """Render one object; an absent value is null."""
    document = {
        "format": FORMAT,
        "variants": list(comparison.variants),
        "baseline": comparison.variants[comparison.baseline],
        "verdicts": list(_verdicts(comparison)),
        "values": list(_records(comparison)),
        "notes": list(comparison.notes),
    }
    return json.dumps(document, indent=1) + "\n"


def render_markdown(comparison: Comparison, view: View) -> str:
    """Render a table per device and launch or line."""
    parts = [view.first] if view.first else []
    every = range(len(comparison.variants))
    for table in comparison.tables:
        parts.append("\n".join(f"`{line}`  " for line in _heading(comparison, table, View())))
        head, *rows = _entries(comparison, table, every, view)
        if not rows:
            parts += [] if all(table.refusals) else [NO_DIFFERENCE.strip()]
            continue
        under = "---", *("---:" for _ in head[1:])
        parts.append("\n".join(markdown_row(*row) for row in (head, under, *rows)))
    parts += [text for text in (_same(comparison, view), *comparison.notes) if text]
    parts += [f"`{BEST}` is the best of its row"] if _has_best(comparison) else []
    return "\n\n".join((*parts, f"Next: `{view.last}`")) + "\n"


FORMATS: Mapping[str, Callable[[Comparison, View], str]] = {
    "table": render_table,
    "csv": render_csv,
    "json": render_json,
    "md": render_markdown,
}


def _has_best(comparison: Comparison) -> bool:
    rows = (row for table in comparison.tables for row in table.rows)
    return any(cell.is_best for row in rows for cell in row.cells)


def _heading(comparison: Comparison, table: Table, view: View) -> Iterator[str]:
    """Yield the device, each variant's launch or line, and refusals."""
    if table.places:
        several = len(comparison.launches) > 1 and table.launch is not None
        launch = f", launch {table.launch}" if several else ""
        yield one_line(f"{table.device}{launch}  {table.text}")
    else:
        number = "all launches" if table.launch is None else f"launch {table.launch}"
        yield f"{table.device}, {number}"
    for index, variant in enumerate(comparison.variants):
        if table.refusals[index]:
            yield from _wrapped(f"  {variant}: {table.refusals[index]}", view)
        elif table.places:
            yield one_line(f"  {variant}: {table.places[index] or 'not executed'}")
        elif launch := comparison.launches[table.launch][index]:
            yield from _wrapped(f"  {variant}: {launch}", view)
            if table.limits and table.limits[index]:
                yield from _wrapped(f"  {' ' * len(variant)}  {table.limits[index]}", view)
    if table.verdict:
        baseline = comparison.variants[comparison.baseline]
        yield from _wrapped(f"  {table.verdict.tell(comparison.variants, baseline)}", view)


def _entries(
    comparison: Comparison, table: Table, variants: Sequence[int], view: View
) -> Iterator[tuple[str, ...]]:
    """Yield the table's cells; variants other than the baseline also have difference and ratio."""
    head = ["counter"]
    for index in variants:
        head += [comparison.variants[index], *_spare(index, comparison, ("difference", "ratio"))]
    yield tuple(head)
    for row in table.rows:
        if not _is_shown(row, view):
            continue
        cells = [row.counter.name]
        for index in variants:
            cell = row.cells[index]
            mark = f" {BEST}" if cell.is_best else ""
            cells.append(number(cell.value, row.counter) + mark)
            cells += _spare(index, comparison, (_difference(cell, row), ratio_text(cell.ratio)))
        yield tuple(cells)


def _spare(index: int, comparison: Comparison, cells: tuple[str, str]) -> tuple[str, ...]:
    """Return the cells, or none for the baseline."""
    return () if index == comparison.baseline else cells


def _difference(cell: Cell, row: Row) -> str:
    if cell.difference is None:
        return ""
    sign = "+" if cell.difference > 0 else ""
    return sign + number(cell.difference, row.counter)


def _is_shown(row: Row, view: View) -> bool:
    """Return whether a row has a difference, or was selected by name."""
    return bool(view.counters) or len({cell.value for cell in row.cells}) > 1


def _same(comparison: Comparison, view: View) -> str:
    """Return the counters that are equal for all variants in all tables."""
    shown = {row.counter.name for t in comparison.tables for row in t.rows if _is_shown(row, view)}
    same = {
        row.counter.name
        for table in comparison.tables
        for row in table.rows
        if row.counter.name not in shown and row.cells[0].value
    }
    every = (row.counter.name for table in comparison.tables for row in table.rows)
    names = [name for name in dict.fromkeys(every) if name in same]
    return f"the same in all variants: {', '.join(names)}" if names else ""


def _records(comparison: Comparison) -> Iterator[dict[str, Value | str | bool]]:
    """Yield every value as a record with the keys of COLUMNS."""
    for table in comparison.tables:
        for row in table.rows:
            for index, cell in enumerate(row.cells):
                place = table.places[index] if table.places else ""
                values = (
                    *(table.device, table.launch, row.counter.vocabulary, row.counter.name),
                    *(row.counter.unit, comparison.variants[index], place),
                    *(cell.value, cell.difference, cell.ratio, cell.is_best),
                )
                yield dict(zip(COLUMNS, values, strict=True))


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


def _wrapped(text: str, view: View) -> list[str]:
    return wrapped(text.strip(), view.width, " " * (len(text) - len(text.lstrip())))

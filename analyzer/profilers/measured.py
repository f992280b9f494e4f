"""Read files of NVIDIA's profilers: the counters that a chip measured, launch by launch.

Reports (.ncu-rep) are read by `ncu_report_file.py`. Five forms of text are known: the raw page of
`ncu --csv` (a row per launch); its details page and its output for `--metrics` (a row per metric);
its `--print-summary` (a row per metric of all launches of one shape); the summary of `nvprof --csv`
(a row per kernel and metric); and the text output of `ncu` without --csv (a heading per launch, a
table per section; lines of dashes give the widths of its columns, lines between tables are advice).
Output of programs and profilers around the table is skipped. Numbers may have thousands separators
of any language; scaled units (Kbyte, Mbyte) are converted back. Tables rewritten by other programs
are accepted: without quotes, with a byte order mark, in UTF-16 as PowerShell redirects.

Source: reports of ncu 2019 to 2026 and of nvprof in public repositories, and of an H200.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ...base.errors import CutraceError
from ...traces.schema import Launch
from ..counting.vocabulary import OURS, Capability, Counter, find_counters, vocabularies
from .measurement import REPORT, SCALES, Line, Measured, MeasuredLaunch
from .ncu_report_file import read_report

TIMES = {"us": 10**3, "ms": 10**6, "s": 10**9}
TIMED = re.compile(r"^([um]?s)(?:econd)?$")
"""Units of time; counters are in nanoseconds."""
SCALED = re.compile(r"^([KMGT])(byte|inst|sector|request)")
METRIC = ("Metric Name", "Metric Value")
SHAPE = ("Kernel Name", "Block Size", "Grid Size")
AVERAGED = ("Invocations", "Metric Name", "Average")
SUMMARY = ("Kernel", "Metric Name", "Avg")
EVENTS = ("Kernel", "Event Name", "Avg")


def is_measured(path: Path) -> bool:
    """Return whether a file is a profiler's: by its suffix, or by its content."""
    if path.suffix in (".cu", ".ptx", ".py") or path.is_dir():
        return False
    if path.suffix in (".csv", ".txt", ".log", REPORT):
        return True
    try:
        return any(_tables(_decoded(path.read_bytes()).splitlines()))
    except OSError:  # the trace reader reports why
        return False


def read_measured(path: Path) -> Measured:
    """Read a profiler's output; `CutraceError` if the file is in no known form or has no launch."""
    if path.suffix == REPORT:
        return read_report(path)
    try:
        lines = _decoded(path.read_bytes()).splitlines()
    except OSError as error:
        raise CutraceError(f"{path}: {error.strerror}") from error
    tables = list(_tables(lines))
    if not tables:
        raise CutraceError(
            f"{path}: no table of a profiler; expected what `ncu` (page raw or details, with --csv"
            " or without) or `nvprof --csv` with --metrics prints"
        )
    launches = tuple(_joined(tables))
    if not launches:
        raise CutraceError(f"{path}: a profiler's table without a launch in it")
    return Measured(tables[0].vocabulary, launches, tables[0].is_averaged)


def _tables(lines: Sequence[str]) -> Iterator[Measured]:
    """Yield the tables of a file: CSV tables, or else text tables."""
    has_csv = False
    for start in (number for number, line in enumerate(lines) if "Kernel" in line):
        if table := _table(lines, start):
            has_csv = True
            yield table
    if not has_csv and (rows := list(printed_rows(lines))):
        yield Measured("ncu", tuple(_details(rows)))


def _decoded(data: bytes) -> str:
    """Return the text, decoded by its byte order mark."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")


def _joined(tables: Sequence[Measured]) -> Iterator[MeasuredLaunch]:
    """Yield the launches of all tables; nvprof prints events and metrics of a kernel in two
    tables."""
    if tables[0].vocabulary == "ncu":
        yield from (launch for table in tables for launch in table.launches)
        return
    launches: dict[str, MeasuredLaunch] = {}
    for launch in (launch for table in tables for launch in table.launches):
        before = launches.get(launch.kernel, launch)
        launches[launch.kernel] = replace(launch, values={**before.values, **launch.values})
    yield from launches.values()


def _table(lines: Sequence[str], start: int) -> Measured | None:
    """Return the table with this header line; None if it is not a header."""
    header = next(csv.reader([lines[start]]), [])
    rows = _rows(header, lines[start + 1 :], lines[start].startswith('"'))
    if {"Kernel Name", *METRIC} <= {*header}:
        return Measured("ncu", tuple(_details(rows)))
    if {"Kernel Name", *AVERAGED} <= {*header}:
        return Measured("ncu", tuple(_shapes(rows)), is_averaged=True)
    if {"Kernel Name", "ID"} <= {*header}:
        return Measured("ncu", tuple(_raw(header, rows)))
    for names in (SUMMARY, EVENTS):
        if all(name in header for name in names):
            return Measured("nvprof", tuple(_summary(rows, names)), is_averaged=True)
    return None


def _rows(header: Sequence[str], lines: Sequence[str], quoted: bool) -> list[dict[str, str]]:
    """Return the rows under a header; other lines are skipped, missing cells are empty.

    Without quotes in the header, a row is a line with as many cells as the header.
    """
    rows = []
    for cells in csv.reader(line for line in lines if line.startswith('"') or not quoted):
        if "Kernel" in cells or "Kernel Name" in cells:  # next table
            break
        if len(cells) > 1 and (quoted or len(cells) == len(header)):
            padded = [*cells, *[""] * (len(header) - len(cells))]
            rows.append(dict(zip(header, padded, strict=False)))
    return rows


def _raw(header: Sequence[str], rows: Sequence[dict[str, str]]) -> Iterator[MeasuredLaunch]:
    """Yield a launch per row, after the row of units."""
    units = rows[0] if rows and not rows[0]["ID"] else {}
    for row in rows[1 if units else 0 :]:
        values = {
            name: value
            for name in header
            if "__" in name or name.startswith("memory_")
            if (value := _number(row[name], units.get(name, ""))) is not None
        }
        yield MeasuredLaunch(row["Kernel Name"], values, capability=row.get("CC", ""))


def _details(rows: Sequence[dict[str, str]]) -> Iterator[MeasuredLaunch]:
    """Yield a launch per ID from a row per metric; rows of lines have a file and a number."""
    lines: dict[str, dict[Line, dict[str, float]]] = {}
    for row in rows:
        value = _number(row["Metric Value"], row.get("Metric Unit", ""))
        if row.get("Line") and value is not None:
            of_launch = lines.setdefault(row["ID"], {})
            of_launch.setdefault((row["File"], int(row["Line"])), {})[row["Metric Name"]] = value
    rows = [row for row in rows if not row.get("Line")]
    ids = [(row.get("ID", str(number)),) for number, row in enumerate(rows)]
    launches = _gathered(rows, ids, "Metric Value")
    for launch, (number,) in zip(launches, dict.fromkeys(ids), strict=True):
        yield replace(launch, lines=lines.get(number, {}))


def _shapes(rows: Sequence[dict[str, str]]) -> Iterator[MeasuredLaunch]:
    """Yield a launch per kernel, block and grid, averaged, from a row per metric."""
    shapes = [tuple(row.get(name, "") for name in SHAPE) for row in rows]
    yield from _gathered(rows, shapes, "Average")


def _gathered(
    rows: Sequence[dict[str, str]], keys: Sequence[tuple[str, ...]], column: str
) -> Iterator[MeasuredLaunch]:
    """Yield a launch per key, with the metrics' values from a column."""
    labels = _labels()
    launches: dict[tuple[str, ...], tuple[dict[str, str], dict[str, float]]] = {}
    for key, row in zip(keys, rows, strict=True):
        values = launches.setdefault(key, (row, {}))[1]
        name, section = row["Metric Name"], row.get("Section Name", "")
        value = _number(row[column], row.get("Metric Unit", ""))
        if value is not None:
            values[labels.get((section, name.lower()), name)] = value
    for row, values in launches.values():
        times = int(_number(row.get("Invocations", ""), "") or 1)
        yield MeasuredLaunch(row["Kernel Name"], values, times, row.get("CC", ""))


def _summary(rows: Sequence[dict[str, str]], names: Sequence[str]) -> Iterator[MeasuredLaunch]:
    """Yield a launch per kernel from a row per kernel and metric."""
    kernel, metric, average = names
    averages: dict[str, dict[str, float]] = {}
    times: dict[str, int] = {}
    for row in rows:
        value = _number(row[average], "")
        if value is not None:
            averages.setdefault(row[kernel], {})[row[metric]] = value
            times[row[kernel]] = int(_number(row.get("Invocations", ""), "") or 1)
    for name, values in averages.items():
        yield MeasuredLaunch(name, values, times[name])


def _labels() -> dict[tuple[str, str], str]:
    """Return metric names by section and label of the details page."""
    (ncu,) = (v for v in vocabularies() if v.name == "ncu")
    return {(c.section, c.label.lower()): c.name for c in ncu.counters if c.label}


def _number(text: str, unit: str) -> float | None:
    """Parse a number as profilers print it; None if the text is not a number.

    >>> _number("1,215,000.50", ""), _number("93.75%", ""), _number("1.02", "Kbyte/block")
    (1215000.5, 93.75, 1020.0)
    >>> _number("1.215.000", ""), _number("3,5", ""), _number("n/a", "")
    (1215000, 3.5, None)
    >>> _number("25.5", "us"), _number("1.25", "msecond"), _number("900", "nsecond")
    (25500.0, 1250000.0, 900)
    >>> _number("4.25e+09", ""), _number("1.5E+03GB/s", "")
    (4250000000.0, 1500.0)
    """
    if power := re.match(r"-?\d+(?:\.\d+)?[eE][+-]\d+", text.strip()):
        return float(power[0])
    match = re.match(r"^-?[\d.,\s\u00a0\u202f']*\d", text.strip())
    if match is None:
        return None
    digits = re.sub(r"[\s\u00a0\u202f']", "", match[0])
    scaled, timed = SCALED.match(unit), TIMED.match(unit)
    scale = SCALES[scaled[1]] if scaled else TIMES[timed[1]] if timed else 1
    value = float(_plain(digits)) * scale
    return int(value) if value.is_integer() and "." not in _plain(digits) else value


def _plain(digits: str) -> str:
    """Return digits with a decimal point, whatever the thousands separator."""
    marks = [mark for mark in digits if mark in ".,"]
    if len(set(marks)) == 2:
        decimal = marks[-1]
    elif re.fullmatch(r"-?\d{1,3}(,\d{3})+", digits) or len(marks) > 1:
        decimal = ""
    else:
        decimal = marks[0] if marks else ""
    numeral = "".join(c for c in digits if c not in ".," or c == decimal)
    return numeral.replace(",", ".")


ENGINE_STREAM = "7"
"""The number that profilers print for the default stream."""


def demangled(launch: Launch) -> str:
    """Return `reverse(int*, const int*)`: the C name with parameter types, as profilers print
    it."""
    types = (argument.type.replace(" *", "*") for argument in launch.arguments)
    return f"{launch.name}({', '.join(types)})"


def chosen_counters(
    vocabulary: str, capability: Capability, names: Sequence[str]
) -> tuple[Counter, ...]:
    """Return the counters to export: the named ones, else the profiler's, else cutrace's own."""
    if names:
        return tuple(c for c in find_counters(names) if c.exists_on(capability))
    every = {v.name: v for v in vocabularies()}
    own = every[vocabulary].of(capability) if vocabulary in every else ()
    return own or every[OURS].of(capability)


_LAUNCH = re.compile(
    r"^\s+(?P<kernel>\S.*?)(?:, \d{4}-\w{3}-\d{1,2} [\d:]+| \([\d, ]+\)x\([\d, ]+\))"
    r", Context \d+, Stream \d+(?:, Device \d+, CC (?P<capability>[\d.]+))?"
)
_SECTION = re.compile(r"^\s+Section: (.*\S)")
_RULE = re.compile(r"^\s+-+( -+)*\s*$")
COLUMNS = ("Metric Name", "Metric Unit", "Metric Value")


def printed_rows(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield a row for each metric of each launch; none if ncu printed no launch."""
    launch, section = dict[str, str](), ""
    columns: list[tuple[int, int]] = []
    number = 0
    for line in lines:
        if heading := _LAUNCH.match(line):
            launch = {"ID": str(number), "Kernel Name": heading["kernel"]}
            launch["CC"] = heading["capability"] or ""
            number, section, columns = number + 1, "", []
        elif match := _SECTION.match(line):
            section, columns = match[1], []
        elif _RULE.match(line):
            columns = [run.span() for run in re.finditer("-+", line)]
        elif not line.strip():
            columns = []
        elif launch and len(columns) == len(COLUMNS):
            cells = dict(zip(COLUMNS, _cells(line, columns), strict=True))
            if cells["Metric Name"] != COLUMNS[0]:
                yield {**launch, "Section Name": section, **cells}


def _cells(line: str, columns: Sequence[tuple[int, int]]) -> list[str]:
    """Return the cells of a line; the last one extends to the end of the line."""
    ends = [*(end for _, end in columns[:-1]), len(line)]
    return [line[start:end].strip() for (start, _), end in zip(columns, ends, strict=True)]

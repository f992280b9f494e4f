"""Parse the text output of `ncu` without --csv: a heading per launch, a table per section.

The rows are those of `ncu --csv --page details`, or of the transposed raw page. A line of dashes
gives the column widths; lines between tables are advice.

Source: what ncu 2019 to 2026 printed, in public repositories and of an H200.
"""

import re
from collections.abc import Iterator, Sequence

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

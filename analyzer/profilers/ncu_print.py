"""What `ncu` prints without --csv: a heading a launch, and a table a section or of all metrics.

The rows are those of `ncu --csv --page details`, or of the raw page turned. A line of dashes says
how wide the columns are; lines between tables are advice.

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
    """Yield a row for each metric of each launch; none where ncu printed no launch."""
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
    """The cells of a line; the last is as long as it is."""
    ends = [*(end for _, end in columns[:-1]), len(line)]
    return [line[start:end].strip() for (start, _), end in zip(columns, ends, strict=True)]

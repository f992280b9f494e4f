"""Write docs/support.md from tests/validate/tried: `python scripts/write/tried.py`.

The tables are those that scripts/try_programs.py, try_strangers.py and try_python.py wrote; the
sentences are in templates/support.md.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "support.md"
TRIED = ROOT / "tests" / "validate" / "tried"
TEMPLATE = Path(__file__).parent / "templates" / "support.md"
Row = dict[str, str]


def read(name: str) -> list[Row]:
    """The rows of a table."""
    with (TRIED / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def text() -> str:
    """The page."""
    tables = {
        "programs": "\n".join(_programs(read("programs"))),
        "strangers": _strangers(read("strangers")),
        "python": "\n".join(_python(read("python"))),
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**tables)


def is_whole(row: Row) -> bool:
    """Whether a program ran to its end with all launches; a sample's assertion is to fail."""
    was_refused = "launch " in row["why"] and "an assertion failed" not in row["why"]
    return row["ran"] == "yes" and row["check"] != "failed" and not was_refused


def _programs(rows: Sequence[Row]) -> Iterator[str]:
    yield "| collection | tried | built | ran to the end | own check: passed | failed | not tried |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name in dict.fromkeys(row["collection"] for row in rows):
        mine = [row for row in rows if row["collection"] == name]
        tried = [row for row in mine if not row["why"].startswith("not tried")]
        whole = [row for row in tried if is_whole(row)]
        built = sum(row["built"] == "yes" for row in tried)
        passed = sum(row["check"] == "passed" for row in whole)
        failed = sum(row["check"] == "failed" for row in tried)
        counts = len(tried), built, len(whole), passed, failed, len(mine) - len(tried)
        yield f"| {name} | {' | '.join(map(str, counts))} |"


def _strangers(rows: Sequence[Row]) -> str:
    columns = ("tried", "built", "ran", "check", "arguments", "time")
    tried, built, ran, check, arguments, time = (sum(int(r[c]) for r in rows) for c in columns)
    others = built - ran - arguments - time
    return (
        f"of {tried} programs of {len(rows)} collections\n{built} were built and {ran} ran to the"
        f" end ({check} with an own check that passed); {arguments} wanted other\narguments,"
        f" {time} were cut off after 40 s with their launches recorded so far, and {others} failed"
    )


def _python(rows: Sequence[Row]) -> Iterator[str]:
    yield "| package | passed | of | |"
    yield "|---|---:|---:|---:|"
    for name in (*dict.fromkeys(row["package"] for row in rows), "together"):
        mine = [row for row in rows if name in (row["package"], "together")]
        passed, of = (sum(int(row[column]) for row in mine) for column in ("passed", "of"))
        yield f"| {name} | {passed:,} | {of:,} | {100 * passed / of:.1f} % |"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

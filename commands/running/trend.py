"""`cutrace check --trend`: counters of a project's kernels at its last commits, and now."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from .project import ProjectCheck, tree_of

if TYPE_CHECKING:
    from ...analyzer.budget.budget_check import Costs

NOW = "now"


@dataclass(frozen=True, slots=True)
class Point:
    """A commit, its date, and the costs of each check."""

    commit: str
    day: str
    costs: "Mapping[str, Costs]"


def trend(project_check: ProjectCheck, last: int, format: str) -> str:
    """Return a table of the counters that changed, or all of them as JSON; oldest commit first."""
    points = [*_past(project_check, last), Point(NOW, "", project_check.costs())]
    if format == "json":
        return json.dumps([{"commit": p.commit, "day": p.day, "checks": p.costs} for p in points])
    if format != "text":
        raise CutraceError(f"--trend --format {format}: expected text or json")
    tables = [*_tables(points)]
    first = f"{points[0].commit} of {points[0].day}" if len(points) > 1 else "the first commit"
    return (
        "\n\n".join(tables) or f"no counter of {len(points[-1].costs)} checks changed since {first}"
    )


def _past(project_check: ProjectCheck, last: int) -> Iterator[Point]:
    folder = project_check.project.path.parent.resolve()
    command = ["git", "-C", str(folder), "log", f"-{last}", "--format=%h %cs", "--", "."]
    process = subprocess.run(command, capture_output=True, check=False, text=True)
    if process.returncode:
        raise CutraceError(f"--trend: git says: {process.stderr.strip().removeprefix('fatal: ')}")
    for line in reversed(process.stdout.splitlines()):
        commit, _, day = line.partition(" ")
        with tree_of(folder, commit) as tree:
            yield Point(commit, day, project_check.costs(tree))


def _tables(points: Sequence[Point]) -> Iterator[str]:
    """Yield per check, device and kernel a table of the counters that vary."""
    from ...analyzer.counting.vocabulary import find_counters
    from ...analyzer.text.layout import align
    from ...analyzer.text.number import number

    names = [point.commit for point in points]
    keys = dict.fromkeys(key for point in points for key in _kernels(point.costs))
    for key in keys:
        counters = [_kernels(point.costs).get(key, {}) for point in points]
        rows = []
        for name in dict.fromkeys(name for each in counters for name in each):
            values = [each.get(name) for each in counters]
            if len({*values}) > 1:
                (counter,) = find_counters([name])
                rows.append((name, *(number(value, counter) for value in values)))
        if rows:
            check, device, kernel = key
            yield "\n".join((f"{check}, {kernel} on {device}", *align([("", *names), *rows], True)))


def _kernels(costs: "Mapping[str, Costs]") -> dict[tuple[str, str, str], Mapping[str, float]]:
    """Return the counters of each check, device and kernel."""
    return {
        (check, device, kernel): counters
        for check, devices in costs.items()
        for device, kernels in devices.items()
        for kernel, counters in kernels.items()
    }

"""Baseline: counters of an earlier version as limits for the present one.

A limit is the largest value of a counter over all launches of a kernel on a device, plus a
tolerance in per cent. The file is JSON: counters by kernel, by device, by check.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import CutraceError
from ..counting.vocabulary import today
from ..profile import Profile
from ..text.output import write_report
from .budget import Budget, Entry, Limit

Costs = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Counters by kernel, by device."""
VERSION = 1


def costs(profile: Profile, counters: Sequence[str]) -> Costs:
    """The most that any launch of each kernel has, on each device; refused launches have none."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for launch in profile.launches:
        if launch.refusal:
            continue
        kernel = found.setdefault(launch.device, {}).setdefault(launch.launch.name, {})
        for name in counters:
            value = launch.counters.get(name)
            if value is not None:
                kernel[name] = max(value, kernel.get(name, value))
    return found


def budget_of(before: Costs, profile: Profile, tolerance: float, path: Path) -> Budget:
    """The limits for those kernels and devices of a profile that were there before.

    What is 0 now needs none.
    """
    named = {name for kernels in before.values() for c in kernels.values() for name in c}
    entries: list[Entry] = []
    for device, kernels in costs(profile, sorted(named)).items():
        for kernel, now in kernels.items():
            known = before.get(device, {}).get(kernel, {})
            limits = tuple(_limits({n: v for n, v in known.items() if now.get(n)}, tolerance))
            if limits:
                entries.append(Entry(len(entries), limits, kernel, device=device))
    return Budget(path, tuple(entries))


def _limits(counters: Mapping[str, float], tolerance: float) -> Iterator[Limit]:
    for name, value in counters.items():
        most = value * (1 + tolerance / 100)
        number = math.floor(most) if float(value).is_integer() else most
        yield Limit(name, (name,), "<=", number)


def write_baseline(path: Path, found: Mapping[str, Costs]) -> None:
    """Write the costs of all checks."""
    text = json.dumps({"cutrace-baseline": VERSION, "checks": found}, indent=1, sort_keys=True)
    write_report(path, f"{text}\n")


def read_baseline(path: Path) -> Mapping[str, Costs]:
    """Read them; `CutraceError` if the file is none of ours."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["cutrace-baseline"] != VERSION:
            raise ValueError("its version is another")
        return {name: _read_costs(check) for name, check in document["checks"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CutraceError(f"{path}: no baseline of `cutrace check --write-baseline`") from error


def _read_costs(check: Costs) -> Costs:
    """The costs of a check, by the names that counters have now; `TypeError` for other values."""
    return {
        device: {
            kernel: {today(name): _finite(value) for name, value in each.items()}
            for kernel, each in kernels.items()
        }
        for device, kernels in check.items()
    }


def _finite(value: float) -> float:
    math.floor(value)
    return value

"""Budget check: evaluate every limit on every launch of its kernel.

`Checker` returns a `Checked` result with one verdict per limit and launch. Further functions write
and read the baseline of a project, the largest counters per kernel and device, and write the
current numbers into a budget file.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import polars as pl
import tomlkit
from tomlkit.items import Table

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...models.replay.device.device import load_device
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import Trace
from ..counting.bounds import verdict as limit_text
from ..counting.evaluate import Value
from ..counting.vocabulary import check_parts, find_counters, headings, nearest_on, today
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..text.output import write_report
from ..time.estimate_text import estimate_text
from ..why.picture import draw_groups
from ..why.place import Place, instructions_on, read_place
from ..why.search import Access, Searcher
from ..why.sentence import describe_access, give_reason
from .budget import Budget, Entry, Limit, read_budget

ERROR = "error"
"""Kind of a trial that could not run."""
TIMES = frozenset({"bound_time", "estimated_time"})
RATIOS = frozenset({"ratio", "FLOP/byte", "FLOP/word"})
"""Units of counters that are ratios of a whole launch and cannot be split by line."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one limit on one launch; `value` is None if the divisor is 0.

    `place` is the limited line; for a broken limit on a whole launch it is the costliest line
    (None: no line), with its `text` and, in `why`, a sentence on its worst access.
    """

    entry: Entry
    limit: Limit
    launch: LaunchProfile
    value: Value
    place: Place | None = None
    text: str = ""
    why: str = ""

    @property
    def holds(self) -> bool:
        """Return whether the launch satisfies the limit."""
        return self.value is None or self.limit.holds(self.value)


@dataclass(frozen=True, slots=True)
class Change:
    """A limit of a budget before an update, and its new number."""

    entry: Entry
    limit: Limit
    number: int | float


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a check without limits: `races` or `memory`; or why a check could not run.

    `report` is the full text, `place` the first line that it blames.
    """

    kind: str
    source: str
    report: str
    holds: bool
    place: Place | None = None

    @property
    def is_error(self) -> bool:
        """Return whether the check could not run."""
        return self.kind == ERROR


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a trace against a budget; `missing` are kernels not in the trace,
    `trials` are the checks without limits.
    """

    budget: Budget
    compiler: str
    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...]
    trials: tuple[Trial, ...] = ()

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Return the failed checks without limits."""
        return tuple(trial for trial in self.trials if not trial.holds and not trial.is_error)

    @property
    def errors(self) -> tuple[Trial, ...]:
        """Return the checks that could not run."""
        return tuple(trial for trial in self.trials if trial.is_error)

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """Return the verdicts of broken limits."""
        return tuple(verdict for verdict in self.verdicts if not verdict.holds)

    @property
    def other_compiler(self) -> bool:
        """Return whether the budget was written for another compiler than the trace's."""
        return bool(self.budget.compiler) and self.budget.compiler != self.compiler


@dataclass(frozen=True)
class Checker:
    """Checks the profile of one trace; `options` are those of its replay."""

    trace: Trace
    profile: Profile
    options: ReplayOptions = field(default_factory=ReplayOptions)

    def judge(self, budget: Budget, compiler: str, allow_missing: bool = False) -> Checked:
        """Check all entries; `CutraceError` for a kernel, line or array that does not exist."""
        names = sorted({p.launch.name for p in self.profile.launches})
        missing = []
        verdicts: list[Verdict] = []
        for entry in budget.entries:
            if not any(is_kernel(name, entry.kernel) for name in names):
                if not allow_missing:
                    raise CutraceError(
                        f"{budget.where(entry)}: the trace has no such kernel"
                        f"{nearest(entry.kernel, names)}; --allow-missing leaves it out"
                    )
                missing.append(entry.kernel)
            verdicts += self._entry(entry, budget)
        return Checked(budget, compiler, tuple(verdicts), tuple(missing))

    def launches(self, entry: Entry) -> tuple[LaunchProfile, ...]:
        """Return the launches that an entry applies to, on each device."""
        device = load_device(entry.device).key if entry.device else ""
        return tuple(
            p
            for p in self.profile.launches
            if is_kernel(p.launch.name, entry.kernel) and device in ("", p.device)
        )

    def measure(self, entry: Entry, limit: Limit, launch: LaunchProfile, where: str) -> Value:
        """Return the current value of a limited expression."""
        if launch.refusal:
            raise CutraceError(f"{where}: {launch.device}: {launch.refusal}")
        for name in limit.counters:
            if headings(launch.capability)[name] is None:
                nearest_one = nearest_on(name, launch.capability)
                raise CutraceError(f"{where}: {launch.device} does not have {name}{nearest_one}")
        value = _evaluate(limit, self._row(entry, limit, launch, where))
        if value is None and not (launch.launch.kept.is_whole and launch.bounds):
            for name in limit.counters:
                if name in TIMES or not launch.launch.kept.is_whole:
                    raise CutraceError(
                        f"{where}: launch {launch.number} does not tell {name}: it needs all blocks"
                        " and all accesses of the launch, and a replay with caches"
                    )
        return value

    def _entry(self, entry: Entry, budget: Budget) -> Iterator[Verdict]:
        where = budget.where(entry)
        for launch in self.launches(entry):
            for limit in entry.limits:
                value = self.measure(entry, limit, launch, where)
                verdict = Verdict(entry, limit, launch, value)
                yield verdict if verdict.holds else self._explain(verdict, where)

    def _row(
        self, entry: Entry, limit: Limit, launch: LaunchProfile, where: str
    ) -> Mapping[str, Value]:
        """Return the counters of the launch, or of the line or array that the entry selects."""
        if entry.line:
            check_parts(find_counters(limit.counters), "line")
            place = self._place(entry, launch, where)
            return _one(
                launch.lines.filter(pl.col("file") == place.file, pl.col("line") == place.line)
            )
        if entry.array:
            check_parts(find_counters(limit.counters), "array")
            names = [array.name for array in launch.launch.arrays]
            if entry.array not in names:
                raise CutraceError(
                    f"{where}: launch {launch.number} has no array `{entry.array}`"
                    f"{nearest(entry.array, names)}"
                )
            return _one(launch.arrays.filter(pl.col("array") == entry.array))
        return launch.counters

    def _place(self, entry: Entry, launch: LaunchProfile, where: str) -> Place:
        """Return the line that an entry selects: by FILE:LINE, or by a part of its text."""
        _, colon, number = entry.line.rpartition(":")
        if colon and number.isdecimal():
            return read_place(entry.line, self.trace)
        rows = launch.lines.filter(pl.col("text").str.contains(entry.line, literal=True))
        places = [Place(row["file"], row["line"]) for row in rows.iter_rows(named=True)]
        if len(places) != 1:
            listing = ", ".join(map(str, places)) or "none"
            raise CutraceError(
                f"{where}: expected FILE:LINE, or a text that one line of the kernel has; found"
                f" {listing}"
            )
        return places[0]

    def _explain(self, verdict: Verdict, where: str) -> Verdict:
        """Return a broken verdict with its costliest line and the reason."""
        entry, limit, launch = verdict.entry, verdict.limit, verdict.launch
        place = self._place(entry, launch, where) if entry.line else _costliest(limit, launch)
        opened = self.trace.launch(launch.number)
        pcs = set(instructions_on(opened, place)) if place else set()
        if entry.array:
            counts = launch.raw.counts.filter(pl.col("array") == entry.array)
            pcs = set(counts["pc"].to_list())
        access = self._worst(limit, launch, pcs)
        if access and (entry.array or place is None):
            row = opened.instructions().slice(access.pc, 1).to_pylist()[0]
            place = Place(row["file"], row["line"]) if row["line"] else None
        sources = self.trace.manifest.sources
        lines = sources.get(place.file, "").splitlines() if place else []
        return Verdict(
            entry,
            limit,
            launch,
            verdict.value,
            place,
            lines[place.line - 1].strip() if place and place.line <= len(lines) else "",
            _describe(access, launch) if access else _time_text(limit, launch),
        )

    def _worst(self, limit: Limit, launch: LaunchProfile, pcs: set[int]) -> Access | None:
        """Return the worst access of some instructions that matches the kind of the limited
        counter.
        """
        device = load_device(launch.device_file or launch.device, self.options.set)
        accesses = Searcher(self.trace.launch(launch.number), device, self.options.dlcm).worst(pcs)
        counter_text = " ".join(limit.counters)
        fitting = [a for a in accesses if SPACES.get(a.kind.space, a.kind.space) in counter_text]
        exact = [a for a in fitting if a.kind.prefix in counter_text]
        return next(iter(exact or fitting), None)


SPACES = {"const": "constant"}
"""State spaces whose name in counters differs from their PTX name."""
MOVED = "bytes_transferred"


def is_kernel(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a kernel: by its name, or by the name of its template."""
    return pattern in (name, name.partition("<")[0])


def _one(rows: pl.DataFrame) -> Mapping[str, Value]:
    """Return the only row of a frame, or zeros if the frame is empty."""
    if rows.height:
        return rows.row(0, named=True)
    return {name: 0 for name in rows.columns}


def _evaluate(limit: Limit, row: Mapping[str, Value]) -> Value:
    """Evaluate a limit's expression on a row of counters."""
    if limit.expression in row:
        return row[limit.expression]
    frame = pl.DataFrame({name: [row[name]] for name in limit.counters}, strict=False)
    value = frame.select(pl.sql_expr(limit.expression).alias("value"))["value"][0]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return int(value) if isinstance(value, bool) else value


def _costliest(limit: Limit, launch: LaunchProfile) -> Place | None:
    """Return the line with the largest value of the limited counter; for a ratio, by bytes
    moved."""
    names: Sequence[str] = limit.counters
    if {c.unit for c in find_counters(names)} & RATIOS:
        moved = [n for n in launch.lines.columns if n.endswith(MOVED)]
        names = [n for n in moved if limit.counters[0].startswith(n.removesuffix(MOVED))] or moved
    rows = launch.lines.filter(pl.col("line") > 0)
    if not rows.height:
        return None
    counters = [name for name in names if rows[name].null_count() < rows.height]
    total = (
        pl.sum_horizontal([pl.col(name).fill_null(0) for name in counters])
        if counters
        else pl.lit(0)
    )
    most = rows.with_columns(total=total).sort("total", descending=True).row(0, named=True)
    return Place(most["file"], most["line"]) if most["total"] else None


def _time_text(limit: Limit, launch: LaunchProfile) -> str:
    """Return the components of a limited time as text; empty for other counters."""
    if "estimated_time" in limit.counters and launch.estimate:
        return estimate_text(launch.estimate, launch.within)
    return limit_text(launch.bounds) if "bound_time" in limit.counters else ""


def _describe(access: Access, launch: LaunchProfile) -> str:
    """Return a sentence on an access and its reason."""
    groups = draw_groups(access)
    parts = (
        describe(access, groups, launch.capability) for describe in (describe_access, give_reason)
    )
    return "; ".join(part for part in parts if part)


Costs = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Counters by kernel, by device."""
VERSION = 1


def costs(profile: Profile, counters: Sequence[str]) -> Costs:
    """Return the maximum of each counter over a kernel's launches, on each device; refused launches
    are left out.
    """
    kernel_costs: dict[str, dict[str, dict[str, float]]] = {}
    for launch in profile.launches:
        if launch.refusal:
            continue
        kernel = kernel_costs.setdefault(launch.device, {}).setdefault(launch.launch.name, {})
        for name in counters:
            value = launch.counters.get(name)
            if value is not None:
                kernel[name] = max(value, kernel.get(name, value))
    return kernel_costs


def budget_of(before: Costs, profile: Profile, tolerance: float, path: Path) -> Budget:
    """Return limits for the kernels and devices of a profile that the baseline has.

    A counter whose baseline is 0 gets no limit.
    """
    named = {name for kernels in before.values() for c in kernels.values() for name in c}
    entries: list[Entry] = []
    for device, kernels in costs(profile, sorted(named)).items():
        for kernel, now in kernels.items():
            baseline = before.get(device, {}).get(kernel, {})
            limits = tuple(_limits({n: v for n, v in baseline.items() if now.get(n)}, tolerance))
            if limits:
                entries.append(Entry(len(entries), limits, kernel, device=device))
    return Budget(path, tuple(entries))


def _limits(counters: Mapping[str, float], tolerance: float) -> Iterator[Limit]:
    for name, value in counters.items():
        most = value * (1 + tolerance / 100)
        number = math.floor(most) if float(value).is_integer() else most
        yield Limit(name, (name,), "<=", number)


def write_baseline(path: Path, costs_by_check: Mapping[str, Costs]) -> None:
    """Write the costs of all checks as a baseline file."""
    text = json.dumps(
        {"cutrace-baseline": VERSION, "checks": costs_by_check}, indent=1, sort_keys=True
    )
    write_report(path, f"{text}\n")


def read_baseline(path: Path) -> Mapping[str, Costs]:
    """Read a baseline file; `CutraceError` if the file is not a baseline."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["cutrace-baseline"] != VERSION:
            raise ValueError("its version is another")
        return {name: _read_costs(check) for name, check in document["checks"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CutraceError(f"{path}: no baseline of `cutrace check --write-baseline`") from error


def _read_costs(check: Costs) -> Costs:
    """Return the costs of a check with current counter names; `TypeError` for non-numeric
    values."""
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


FIRST: Mapping[str, str] = {
    "global_load_transactions": "global_load_transactions",
    "global_store_transactions": "global_store_transactions",
    "global_atomic_transactions": "global_atomic_transactions",
    "local_load_transactions": "local_load_transactions",
    "local_store_transactions": "local_store_transactions",
    "shared_conflicts": "shared_wavefronts",
    "constant_wavefronts": "constant_wavefronts",
    "texture_transactions": "texture_transactions",
    "divergent_branches": "branches",
}
"""Counters that a new budget limits, each if its related counter is not 0."""


def update_budget(path: Path, checker: Checker, compiler: str) -> tuple[int, list[Change]]:
    """Write current numbers into a budget, keeping comments and layout, or create a new budget.

    Each limit becomes the worst value of the launches that it applies to. Return the number of
    limits, and those of them that changed.
    """
    return (_renew if path.exists() else _make)(path, checker, compiler)


def _renew(path: Path, checker: Checker, compiler: str) -> tuple[int, list[Change]]:
    budget = read_budget(path)
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["compiler"] = compiler
    count, changes = 0, []
    for entry, table in zip(budget.entries, document["budget"], strict=True):
        for limit in entry.limits:
            values = [
                checker.measure(entry, limit, launch, budget.where(entry))
                for launch in checker.launches(entry)
            ]
            if (value := _worst(limit, values)) is not None:
                table[limit.expression] = _written(limit, value)
                if value != limit.number:
                    changes.append(Change(entry, limit, value))
            count += 1
    write_report(path, tomlkit.dumps(document))
    return count, changes


def _make(path: Path, checker: Checker, compiler: str) -> tuple[int, list[Change]]:
    profile = checker.profile
    document = tomlkit.document()
    able = [
        d for d in profile.devices if not all(p.refusal for p in profile.launches if p.device == d)
    ]
    document["devices"] = able
    document["compiler"] = compiler
    tables = tomlkit.aot()
    devices = able if len(able) > 1 else [""]
    kernels = dict.fromkeys(p.launch.name for p in profile.launches)
    for kernel in kernels:
        for device in devices:
            entry = Entry(len(tables), (), kernel, device=device)
            running = [p for p in checker.launches(entry) if not p.refusal]
            if numbers := dict(_numbers(running)):
                tables.append(_table(entry, numbers))
    document["budget"] = tables
    write_report(path, tomlkit.dumps(document))
    return sum(len(table) - 1 - ("device" in table) for table in tables), []


def _numbers(launches: Iterable[LaunchProfile]) -> Iterator[tuple[str, int | float]]:
    """Yield the worst value of each counter that a kernel uses."""
    every = list(launches)
    for counter, used in FIRST.items():
        values = [p.counters[counter] for p in every if p.counters[used]]
        valid = [value for value in values if value is not None]
        if valid:
            yield counter, max(valid)


def _table(entry: Entry, numbers: Mapping[str, int | float]) -> Table:
    table = tomlkit.table()
    table["kernel"] = entry.kernel
    if entry.device:
        table["device"] = entry.device
    for name, value in numbers.items():
        table[name] = value
    return table


def _worst(limit: Limit, values: Iterable[Value]) -> int | float | None:
    """Return the extreme value, which all values satisfy as a limit."""
    valid = [value for value in values if value is not None]
    if not valid:
        return None
    return min(valid) if limit.operator.startswith(">") else max(valid)


def _written(limit: Limit, value: int | float) -> int | float | str:
    """Return a limit in the form it had: a number for "not more than", otherwise a string with its
    operator.
    """
    return value if limit.operator == "<=" else f"{limit.operator} {value}"

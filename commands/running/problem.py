"""Judge a solution of a benchmark's problem: run it, then the reference, and compare the values.

The solution runs without a network, with limits of time and memory, before the reference does.
`tracer/program/startup/problem_host.py` is what runs in both processes.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analyzer.comparison.judgement import (
    Judgement,
    Output,
    Side,
    Tolerance,
    compare_values,
    judge_sides,
)
from ...analyzer.comparison.side import read_side
from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault, describe_error, nearest, place_of
from ...tracer.program.launches import Tally
from ...tracer.program.run import STARTUP, Order
from ...traces.reader import read_trace
from ..options.selection import Reading
from .program import choose_device, ending_text, run_program
from .stop import Stop

if TYPE_CHECKING:
    from ...models.replay.interface.options import ReplayOptions
    from ...tracer.program.run import Ended

KINDS = {
    "kernelbench": ({"Model", "get_inputs"}, 1e-4),
    "gpumode": ({"generate_input", "ref_kernel"}, None),
    "leetgpu": ({"Challenge"}, None),
}
"""What a problem of each kind defines, and the tolerance of its 32-bit floats, if it has one."""
HALF = 1e-2
"""The tolerance of KernelBench for 16-bit floats."""
PATIENCE = 10
"""Real time that a process may take, as a multiple of its processor time: it may build."""


def kind_of(path: Path) -> str | None:
    """Return which kind of problem a Python file is; None if it is none."""
    if path.suffix != ".py" or not path.is_file():
        return None
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return None
    names = {str(getattr(node, "name", "")) for node in tree.body}
    return next((kind for kind, (wanted, _) in KINDS.items() if wanted <= names), None)


def read_sizes(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of `NAME=VALUE`."""
    sizes = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            sizes[name] = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            equals = ""
        if not (name.isidentifier() and equals):
            raise CutraceError(f"--size {word}: expected NAME=VALUE, as in batch_size=16")
    return sizes


def _constants(path: Path) -> dict[str, Any]:
    """Return the constants of a file that `--size` changes; None for one that is no number."""
    statements = ast.parse(path.read_bytes()).body
    return {
        name: _number(value) for statement in statements for name, value in _assigned(statement)
    }


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a statement assigns, with its expression."""
    if isinstance(node, ast.AnnAssign) and node.value:
        pairs: list[tuple[ast.expr, ast.expr]] = [(node.target, node.value)]
    elif isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    else:
        return
    for target, value in pairs:  # `height, width = 128, 128` has a value for each
        targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        is_listed = len(targets) > 1 and isinstance(value, (ast.Tuple, ast.List))
        values = value.elts if is_listed else [value] * len(targets)  # type: ignore[attr-defined]
        for each, its_value in zip(targets, values, strict=False):
            if isinstance(each, ast.Name):
                yield each.id, its_value


def _number(node: ast.expr) -> Any:
    """Return the value of `4096` or `2048 * 2`."""
    arithmetic = (ast.Expression, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if any(
        not isinstance(part, arithmetic) or isinstance(part, ast.Pow) for part in ast.walk(node)
    ):
        return None
    value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    return value if isinstance(value, int) else None


@dataclass(frozen=True, slots=True)
class Trial:
    """How one of the two processes went: its facts, its report, the types of what it returned."""

    side: Side
    report: Mapping[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and a solution to judge, each process within so many seconds and bytes."""

    problem: Path
    solution: Path
    sizes: Mapping[str, Any]
    tolerance: Tolerance
    seconds: float
    memory: int
    options: "ReplayOptions"
    recording: Reading

    def verdict(self, names: tuple[str, str]) -> Judgement:
        """Run both, the solution first, and compare."""
        self._check_sizes()
        with scratch_folder() as folder:
            solution = self._run("solution", folder)
            if solution.report.get("stage") in (None, "problem", "inputs"):
                raise self._of_reference(names[0], solution)
            reference = self._run("reference", folder)
            if reference.side.error:
                raise self._of_reference(names[0], reference)
            if solution.report["inputs"] != reference.report["inputs"]:
                raise CutraceError(f"{self.problem}: its inputs differ from run to run")
            outputs = None if solution.side.error else tuple(self._compare(solution, reference))
            before = replace(reference.side, name=names[0])
            after = replace(solution.side, name=names[1], cheat=_cheat(solution, folder))
            notes = tuple(self._notes(reference, solution, after))
        return judge_sides(before, after, self.options.devices[0], outputs, notes)

    def _check_sizes(self) -> None:
        if kind_of(self.problem) == "gpumode":
            return
        known = _constants(self.problem)
        for name in self.sizes:
            if name not in known:
                there = ", ".join(known) or "none"
                raise CutraceError(
                    f"--size {name}{nearest(name, known)}: {self.problem} has the constants {there}"
                )

    def _of_reference(self, name: str, trial: Trial) -> CutraceError:
        error = trial.side.error or {"message": "it makes no inputs", "kind": "program"}
        message = f"the reference {name} fails: {error['message']}"
        if "memory" in str(error["message"]) or "allocate" in str(error["message"]):
            message += f" (--memory is {self.memory:,} bytes){self._advice()}"
        return CutraceError(message, str(error["kind"]))

    def _advice(self) -> str:
        """Return how to make the inputs smaller."""
        numbers = {k: v for k, v in _constants(self.problem).items() if v is not None}
        largest = sorted(numbers, key=lambda name: -numbers[name])[:3]
        of = ", ".join(f"{name}={numbers[name]}" for name in largest)
        return f"; smaller inputs: --size NAME=VALUE{f', of {of}' if of else ''}"

    def _run(self, role: str, folder: Path) -> Trial:
        """Run one of the two in a process, and read its trace and its report."""
        settings = {
            "role": role,
            "kind": kind_of(self.problem),
            "problem": str(self.problem.resolve()),
            "solution": str(self.solution.resolve()),
            "folder": str(folder),
            "sizes": {name: repr(value) for name, value in self.sizes.items()},
            "seconds": self.seconds,
            "memory": self.memory,
        }
        words = (sys.executable, "-P", str(STARTUP / "problem_host.py"), json.dumps(settings))
        trace, tally, stop = folder / f"{role}.cutrace", Tally(), Stop(self.seconds)
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        device = choose_device(self.options.devices[0])
        limit = PATIENCE * self.seconds
        order = Order(words, output=_stderr(), seconds=limit, tally=tally)
        try:
            with stop, redirect_stdout(sys.stderr):
                ended = run_program(order, trace, device, self.recording)
        except KernelFault as fault:
            message = f"{fault}{self._advice()}"
            side = Side("", error=describe_error(KernelFault(message, fault.cause)))
            return Trial(side, _read(report), folder)
        facts = _read(report)
        if ended.why and facts.get("stage") == "solution":
            raise CutraceError(
                f"{self.solution} was not built within {limit:g} s, {PATIENCE} times --seconds",
                "build",
            )
        if error := self._error(role, ended, facts):
            return Trial(Side("", error=error), facts, folder)
        selection = self.recording.select(read_trace(trace))
        side = read_side(selection, self.options, None, False)
        return Trial(replace(side, operators=dict(tally.operators)), facts, folder)

    def _error(self, role: str, ended: "Ended", facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what kept a process from its end; None if it got there."""
        if ended.fault:
            return describe_error(ended.fault)
        if ended.why:
            return describe_error(KernelFault(f"{ended.why}{self._advice()}", "endless"))
        error, stage = facts.get("error"), facts.get("stage", "")
        if error:
            file = self.solution if stage in ("solution", "call") and role == "solution" else None
            return self._python_error(error, file or self.problem, stage)
        if ended.status or stage != "done":
            how = ending_text(ended.status) or "it ended before it returned its results"
            if "SIGXCPU" in how:
                how = f"it took longer than {self.seconds:g} s of processor time, the limit"
                return describe_error(KernelFault(f"{how}{self._advice()}", "endless"))
            return describe_error(CutraceError(how, "program"))
        return None

    def _python_error(self, error: Mapping[str, Any], file: Path, stage: str) -> dict[str, Any]:
        """Return an error of the Python file; of a compiler's output the first with a place."""
        message = f"{error['kind']}: {error['message']}"
        lines = [line for line in message.splitlines() if "error" in line and place_of(line)]
        at = f"{file}:{error['line']}: " if error["line"] else f"{file}: "
        kind = "build" if stage == "solution" else "program"
        text = lines[0].strip() if lines else f"{at}{' '.join(message.split())[:400]}"
        described = describe_error(CutraceError(text, kind))
        return {**described, "file": described["file"] or str(file)}

    def _compare(self, solution: Trial, reference: Trial) -> Iterator[Output]:
        """Yield each array of each case beside the reference's, or the answer of the check."""
        import numpy as np

        checks, cases = reference.report["checks"], reference.report["cases"]
        for number, case in enumerate(cases):
            arrays = solution.report["cases"][number]["arrays"]
            which = f" of call {number}" if len(cases) > 1 else ""
            if checks:
                size = np.load(solution.folder / f"solution{number}.0.npy").size if arrays else 0
                yield Output(f"out{which}", size, problem=checks[number])
                continue
            if len(arrays) != len(case["arrays"]):
                count, wanted = len(arrays), len(case["arrays"])
                yield Output(f"out{which}", problem=f"{count} arrays, expected {wanted}")
                continue
            for place, (name, dtype) in enumerate(case["arrays"]):
                ours, theirs = (
                    np.load(solution.folder / f"{role}{number}.{place}.npy")
                    for role in ("solution", "reference")
                )
                if ours.shape != theirs.shape:
                    problem = f"{ours.shape} is not the shape {theirs.shape}"
                    yield Output(f"{name}{which}", problem=problem)
                    continue
                yield compare_values(f"{name}{which}", ours, theirs, self._tolerance(dtype))

    def _tolerance(self, dtype: str) -> Tolerance:
        own = KINDS[str(kind_of(self.problem))][1]
        if self.tolerance != Tolerance() or own is None or "float" not in dtype:
            return self.tolerance
        own = HALF if dtype.endswith("16") else own
        return Tolerance(own, own)

    def _notes(self, reference: Trial, solution: Trial, after: Side) -> Iterator[str]:
        yield "races in global memory are not looked for"
        for name, calls in sorted(after.operators.items()):
            times = f"{calls} call{'s' * (calls > 1)}"
            yield f"{name} ({times}) is computed on the host: its kernels are not counted"
        report = solution.report
        if not report.get("isolated"):
            yield "this system does not let a process leave the network"
        if report.get("opened"):
            yield f"{after.name} opens {self.problem.name}"
        for case, theirs in zip(report["cases"], reference.report["cases"], strict=False):
            if names := sorted({*case["changed"]} - {*theirs["changed"]}):
                yield f"{after.name} changes its inputs: {', '.join(names)}"
                break


def _stderr() -> int:
    """Return the descriptor of stderr, or the process's own where it is replaced."""
    try:
        return sys.stderr.fileno()
    except OSError:
        return 2


def _read(report: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(report.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return read


def _cheat(solution: Trial, folder: Path) -> str:
    """Return in what way kernels do not compute the results; empty if they do."""
    cases, side = solution.report.get("cases", ()), solution.side
    if side.error or not cases:
        return ""
    from_host = ", ".join(f"{name}" for name in sorted(side.operators))
    if not side.launches:
        if from_host:
            return f"its results come from {from_host}, of a library"
        return "it returns what was in memory before, or what the host computed"
    launches = [case["launches"] for case in cases]
    if not all(launches):
        return f"call {launches.index(0)} launches nothing: it returns an earlier result"
    computed = solution.report["computed"]
    if computed and len(computed) == solution.report["varied"]:
        names = ", ".join(sorted({*computed.values()}))
        return f"{names} computes the result on the host, its kernels only pass it on"
    if not _is_same_without(folder, solution.report["recorded"], cases):
        return ""
    if not solution.report["again"]:
        return "a call with equal inputs launches nothing: it returns an earlier result"
    source = f"it comes from {from_host}" if from_host else "it comes from the host"
    return f"the result is the same when its kernels do not run: {source}"


def _is_same_without(folder: Path, recorded: int, cases: Any) -> bool:
    """Return whether a call without kernels returned the values of the recorded one."""
    import numpy as np

    values = [
        tuple(folder / f"{stem}.{place}.npy" for stem in ("without", f"solution{recorded}"))
        for place in range(len(cases[recorded]["arrays"]))
    ]
    if not values or not all(without.is_file() for without, _ in values):
        return False
    pairs = [tuple(map(np.load, pair)) for pair in values]
    if all(np.all(one == one.reshape(-1)[:1]) for _, one in pairs):
        return False  # of equal elements: as good as none
    return all(
        one.shape == other.shape
        and bool(np.all((one == other) | ((one != one) & (other != other))))
        for one, other in pairs
    )

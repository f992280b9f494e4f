"""Run a solution of a benchmark's problem, or its reference, and write what it returns.

A problem is a Python file as KernelBench (`Model`, `get_inputs`), GPU MODE (`generate_input`,
`ref_kernel`) or LeetGPU (`Challenge`) has it. The solution runs first, in a process of its own
without a network: what is expected of it exists nowhere yet. The code runs in the user's Python, so
it imports the standard library and NumPy only.
"""

import ast
import ctypes
import hashlib
import importlib.util
import inspect
import json
import os
import random
import re
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

RECORDED, UNRECORDED, LEFT_OUT = range(3)  # as tracer/program/launches.py has them
SEED = 42
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # of unshare(2)
_TEST = re.compile(r"^\s*-\s*(\{.*\})\s*$")


def main(settings: Mapping[str, Any]) -> None:
    """Run the solution or the reference of `settings`; report the stage that it has reached."""
    report = Report(Path(settings["folder"]))
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # each tensor is an array of its own
    report.isolated = settings["role"] == "reference" or cut_network()
    resource.setrlimit(resource.RLIMIT_DATA, (settings["memory"], settings["memory"]))
    try:
        run(settings, report)
    except BaseException as error:
        is_own = settings["role"] == "solution" and report.stage in ("solution", "call")
        report.fail(error, Path(settings["solution" if is_own else "problem"]))


def run(settings: Mapping[str, Any], report: "Report") -> None:
    """Make the inputs, load what is to run, and call it with each of them."""
    path, solution = Path(settings["problem"]), Path(settings["solution"])
    sys.path[:0] = [str(solution.parent), str(path.parent), str(path.parent.parent)]
    sys.path += [str(each) for each in path.parents if (each / "core/challenge_base.py").is_file()]
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    begin_phase(driver, UNRECORDED)
    report.reach("problem")
    problem = PROBLEMS[settings["kind"]](load(path, settings["sizes"]), path, settings["sizes"])
    cases = problem.cases()
    report.reach("inputs")
    inputs = [_seeded(case) for case in cases]
    report.inputs = [digest(each) for each in inputs]
    is_solution = settings["role"] == "solution"
    report.reach("solution" if is_solution else "reference")
    if is_solution:
        watch_opened(path, report)
        call = _seeded(lambda: problem.solution(load_solution(solution, settings["sizes"])))
    else:
        call = _seeded(problem.reference)
    report.reach("call")
    recorded = report.recorded = problem.recorded
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime + settings["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    for number, case in enumerate(cases):
        values, before = inputs[number], report.inputs[number]
        if number == recorded:
            name_arrays(driver, problem, call, values)
            begin_phase(driver, RECORDED)
        returned = _seeded(lambda values=values: call(values))  # type: ignore[misc]
        launches = begin_phase(driver, UNRECORDED)
        results = problem.results(values, returned)
        names = report.write(f"{settings['role']}{number}", results)
        changed = [name for name, each in digest(values).items() if before[name] != each]
        report.cases.append({"launches": launches, "arrays": names, "changed": changed})
        if not is_solution and problem.check:
            report.checks.append(_check(problem.check, case, report, number, results))
    if is_solution:
        values = _seeded(cases[recorded])
        watch_operators(settings["folder"], recorded, report)
        begin_phase(driver, LEFT_OUT)
        try:
            returned = _seeded(lambda: call(values))
            report.write("without", problem.results(values, returned))
        except Exception as error:  # no result, as it should be
            report.reach(f"call without kernels: {type(error).__name__}")
        report.again = begin_phase(driver, UNRECORDED)
    report.reach("done")


def _check(check: Any, case: Any, report: "Report", number: int, results: Any) -> Any:
    """Return what the problem's own check says of the solution's results of a case, or why they
    cannot be checked."""
    try:
        output = report.read(number, results)
    except ValueError as problem:
        return str(problem)
    return check(_seeded(case), output)


def cut_network() -> bool:
    """Leave this process and its children without a network, if the system permits it."""
    libc = ctypes.CDLL(None)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NETWORK) == 0:
        return True
    if libc.unshare(_NEW_USER | _NEW_NETWORK):
        return False
    for name, text in (
        *(("setgroups", "deny"), ("uid_map", f"{user} {user} 1")),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)
    return True


def begin_phase(driver: Any, phase: int) -> int:
    """Say what becomes of the launches that follow; return how many there were since the last."""
    driver.cuCtxSynchronize()  # those of all streams are launched
    launches = ctypes.c_uint64()
    driver._cutrace_phase(phase, ctypes.byref(launches))
    return launches.value


def watch_opened(path: Path, report: "Report") -> None:
    """Note from now on whether the problem's file is opened."""

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(path.name):
            report.opened = True

    sys.addaudithook(note)


def watch_operators(folder: str, recorded: int, report: "Report") -> None:
    """Note which arrays of the recorded call an operator of torch returns on the host: a call
    without kernels follows. Arrays of equal elements are as good as none."""
    arrays = {}
    for number, _ in enumerate(report.cases[recorded]["arrays"]):
        array = np.load(Path(folder, f"solution{recorded}.{number}.npy")).reshape(-1)
        if np.any(array != array[:1]):
            arrays[str(number)] = array
    report.varied = len(arrays)

    def note(operator: str, result: Any) -> None:
        for _, value in named(result):
            for number, array in arrays.items():
                shape = getattr(value, "shape", ())
                if np.prod(shape) == array.size and np.array_equal(_flat(value), array, True):
                    report.computed[number] = operator

    if host := sys.modules.get("cutrace_torch_host"):
        host.observers.append(note)


def _flat(value: Any) -> Any:
    return to_array(value).reshape(-1)


def _seeded(call: Callable[[], Any]) -> Any:
    random.seed(SEED)
    np.random.seed(SEED)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(SEED)
        with torch.no_grad():
            return call()
    return call()


def load(path: Path, sizes: Mapping[str, Any] | None = None) -> ModuleType:
    """Import a file, with other values of its constants."""
    tree = ast.parse(path.read_bytes(), str(path))
    tree.body = [each for node in tree.body for each in _resized(node, sizes or {})]
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    module.__spec__ = importlib.util.spec_from_file_location(path.stem, path)
    sys.modules[path.stem] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def _resized(node: ast.stmt, sizes: Mapping[str, Any]) -> Iterator[ast.stmt]:
    """Yield a statement, then assignments of other values to constants that it sets."""
    yield node
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = (part for target in targets for part in ast.walk(target))
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    values = {name: sizes[name] for name in names if name in sizes}
    if values and all(isinstance(target, ast.Name) for target in targets):
        first = next(iter(values.values()))  # of `height = width = 128`, if only one is given
        values = {name: values.get(name, first) for name in names}
    for name, value in values.items():
        (changed,) = ast.parse(f"{name} = {value!r}").body
        yield ast.increment_lineno(changed, node.lineno - 1)


def load_solution(path: Path, sizes: Mapping[str, Any]) -> Any:
    """Import a Python solution, or build one of CUDA C++ as a library."""
    if path.suffix == ".py":
        return load(path, sizes)
    library = Path(os.environ["CUTRACE_SCRATCH"], f"lib{path.stem}.so")
    nvcc = (os.environ["CUTRACE_PYTHON"], "-m", "cutrace", "nvcc", "-shared", "-Xcompiler", "-fPIC")
    built = subprocess.run(
        (*nvcc, "-o", library, path), capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise RuntimeError(built.stdout + built.stderr)
    return ctypes.CDLL(str(library))


class Problem:
    """A problem of one collection. `case` makes the inputs of a call."""

    recorded = 0
    check: Callable[[Any, Any], Any] | None = None

    def __init__(self, module: ModuleType, path: Path, sizes: Mapping[str, Any]) -> None:
        self.module, self.path, self.sizes = module, path, sizes

    def cases(self) -> list[Callable[[], Any]]:
        """Return functions that make the inputs of each call."""
        raise NotImplementedError

    def reference(self) -> Callable[[Any], Any]:
        """Return the reference as a function of the inputs."""
        raise NotImplementedError

    def solution(self, module: Any) -> Callable[[Any], Any]:
        """Return a solution as a function of the inputs."""
        raise NotImplementedError

    def results(self, values: Any, returned: Any) -> Any:
        """Return what is compared."""
        return returned

    def names(self, call: Any, values: Any) -> Iterator[tuple[str, Any]]:
        """Yield the inputs with their names."""
        return named(values)


class KernelBench(Problem):
    """`Model` and `ModelNew`, made of `get_init_inputs()`; their weights come from one seed."""

    def cases(self) -> list[Callable[[], Any]]:
        """Return two draws of `get_inputs()`."""
        return [self._first, self._second]

    def _first(self) -> dict[str, Any]:
        values = [_to_device(each) for each in self.module.get_inputs()]
        names = [*inspect.signature(self.module.Model.forward).parameters][1:]
        names += [f"input{number}" for number in range(len(names), len(values))]
        return dict(zip(names, values, strict=False))

    def _second(self) -> dict[str, Any]:
        self._first()  # the generator goes on
        return self._first()

    def reference(self) -> Callable[[Any], Any]:
        """Return the model of the problem."""
        return self._make(self.module.Model)

    def solution(self, module: Any) -> Callable[[Any], Any]:
        """Return the model of the solution."""
        return self._make(_entry(module, "ModelNew"))

    def _make(self, kind: Any) -> Callable[[Any], Any]:
        first: Any = getattr(self.module, "get_init_inputs", list)()
        model = _seeded(lambda: kind(**first) if isinstance(first, dict) else kind(*first))
        model = _to_device(model)

        def call(values: Any) -> Any:
            return (model if callable(model) else model.forward)(*values.values())

        call.model = model  # type: ignore[attr-defined]
        return call

    def names(self, call: Any, values: Any) -> Iterator[tuple[str, Any]]:
        """Yield the arguments of `forward`, and the parameters of the model."""
        yield from named(values)
        for kind in ("named_parameters", "named_buffers"):
            yield from getattr(call.model, kind, lambda: ())()


class GpuMode(Problem):
    """`custom_kernel` beside `ref_kernel`; sizes are arguments of `generate_input`."""

    def cases(self) -> list[Callable[[], Any]]:
        """Return the tests of task.yml, of which the largest is recorded, or the sizes given."""
        tests = [dict(self.sizes)] if self.sizes else [*self._tests()]
        if not tests:
            text = f"{self.path.parent}/task.yml has no tests: give the arguments of generate_input"
            raise ValueError(f"{text} by --size")
        made = inspect.signature(self.module.generate_input).parameters
        if "seed" in made:
            tests = [{"seed": SEED, **each} for each in tests]
        self.recorded = max(range(len(tests)), key=lambda n: (_product(tests[n]), -n))
        generate = self.module.generate_input
        return [lambda each=each: generate(**each) for each in tests]  # type: ignore[misc]

    def _tests(self) -> Iterator[dict[str, Any]]:
        task, is_test = self.path.with_name("task.yml"), False
        for line in task.read_text().splitlines() if task.is_file() else ():
            if line[:1].isalpha():
                is_test = line.startswith("tests:")
            elif is_test and (match := _TEST.match(line)):
                yield json.loads(match[1])

    @cached_property
    def check(self) -> Callable[[Any, Any], Any] | None:  # type: ignore[override]
        """Return the problem's own check, if it has one."""
        own = getattr(self.module, "check_implementation", None)
        if own is None:
            return None

        def check(data: Any, output: Any) -> str:
            answer = own(data, output)
            good, reason = answer if isinstance(answer, tuple) else (not answer, answer)
            return "" if good else str(reason or "it fails the check of the problem")

        return check

    def reference(self) -> Callable[[Any], Any]:
        """Return the reference."""
        return self.module.ref_kernel  # type: ignore[no-any-return]

    def solution(self, module: Any) -> Callable[[Any], Any]:
        """Return the solution."""
        return _entry(module, "custom_kernel")  # type: ignore[no-any-return]


class LeetGpu(Problem):
    """`solve` beside the `reference_impl` of a `Challenge`: both write into their arguments."""

    most_bytes = 1 << 26
    """Tests with larger arguments are left out."""
    made: dict[int, Any]
    """Tests that nobody has used yet."""

    @cached_property
    def challenge(self) -> Any:
        """The challenge."""
        torch = sys.modules.get("torch")
        kind = self.module.Challenge
        return kind(device="cuda") if torch and torch.cuda.is_available() else kind()

    def cases(self) -> list[Callable[[], Any]]:
        """Return the functional tests, of which the largest is recorded."""
        tests = [_seeded(self.challenge.generate_example_test)]
        tests += _seeded(self.challenge.generate_functional_test)
        bytes_of = [sum(_bytes(each) for _, each in named(test)) for test in tests]
        numbers = [n for n, size in enumerate(bytes_of) if size <= self.most_bytes]
        self.recorded = max(range(len(numbers)), key=lambda n: (bytes_of[numbers[n]], -n))
        self.made = {n: tests[n] for n in numbers}
        return [lambda n=n: self._test(n) for n in numbers]  # type: ignore[misc]

    def _test(self, number: int) -> Any:
        if number in self.made:
            return self.made.pop(number)
        if number == 0:
            return self.challenge.generate_example_test()
        return self.challenge.generate_functional_test()[number - 1]

    def reference(self) -> Callable[[Any], Any]:
        """Return the reference."""
        return lambda values: self.challenge.reference_impl(**values)

    def solution(self, module: Any) -> Callable[[Any], Any]:
        """Return the solution: a Python function, or one of a library that takes addresses."""
        solve = _entry(module, "solve")
        kinds = {n: each[0] for n, each in self.challenge.get_solve_signature().items()}
        if not isinstance(module, ctypes.CDLL):
            return lambda values: solve(*(values[name] for name in kinds))

        def call(values: Any) -> Any:
            return solve(*(_as_c(values[name], kind) for name, kind in kinds.items()))

        return call

    def results(self, values: Any, returned: Any) -> Any:
        """Return the arguments that are written, or what is returned if there are none."""
        signature = self.challenge.get_solve_signature()
        written = {name: values[name] for name, each in signature.items() if "out" in each[1]}
        return written or returned


PROBLEMS: Mapping[str, type[Problem]] = {
    "kernelbench": KernelBench,
    "gpumode": GpuMode,
    "leetgpu": LeetGpu,
}


def _entry(module: Any, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise AttributeError(f"it has no {name}") from None


def _to_device(value: Any) -> Any:
    """Return a tensor or a model of torch on the device; other values as they are."""
    torch = sys.modules.get("torch")
    kinds = (torch.Tensor, torch.nn.Module) if torch else ()
    return value.cuda() if torch and isinstance(value, kinds) else value


def _product(test: Mapping[str, Any]) -> float:
    return float(np.prod([v for k, v in test.items() if k != "seed" and isinstance(v, int)]))


def _as_c(value: Any, kind: Any) -> Any:
    address = address_of(value)
    return kind(value) if address is None else ctypes.c_void_p(address)


def address_of(value: Any) -> int | None:
    """Return the address of an array on the device; None of any other value."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    interface = getattr(value, "__cuda_array_interface__", None)
    return int(interface["data"][0]) if interface else None


def named(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested values with their names: `A`, `[0]`, `[1][2]`."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from named(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (tuple, list)):
        for number, each in enumerate(value):
            yield from named(each, f"{name}[{number}]")
    else:
        yield name, value


def _bytes(value: Any) -> int:
    return int(getattr(value, "nbytes", 0))


def name_arrays(driver: Any, problem: Problem, call: Any, values: Any) -> None:
    """Give the arrays of inputs their names, for the trace."""
    for name, value in problem.names(call, values):
        if address := address_of(value):
            driver._cutrace_name(ctypes.c_uint64(address), name.encode())


def digest(values: Any) -> dict[str, str]:
    """Return a hash of each array among the inputs, by name."""
    arrays = ((name, value) for name, value in named(values) if hasattr(value, "shape"))
    return {
        name: hashlib.sha256(np.ascontiguousarray(to_array(value)).tobytes()).hexdigest()[:16]
        for name, value in arrays
    }


def to_array(value: Any) -> Any:
    """Return an array or number of any package as one of NumPy; bfloat16 as float32."""
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(f"it returns a {type(value).__name__}, which is no plain tensor")
        plain = value.detach().cpu().resolve_conj().resolve_neg()
        try:
            return plain.numpy()
        except TypeError:
            return plain.float().numpy()
    for name in ("copy_to_host", "get"):  # of Numba, of CuPy
        if hasattr(value, name):
            return getattr(value, name)()
    return np.asarray(value)


class Report:
    """What the parent reads: `report.json` and the arrays beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stage = ""
        self.isolated = self.opened = False
        self.recorded = self.again = self.varied = 0
        self.computed: dict[str, str] = {}
        self.inputs: list[dict[str, str]] = []
        self.cases: list[dict[str, Any]] = []
        self.checks: list[str] = []
        self._error: dict[str, Any] | None = None

    def reach(self, stage: str) -> None:
        """Note a stage, for the case that the process ends in it."""
        self.stage = stage
        self._save()

    def fail(self, error: BaseException, path: Path) -> None:
        """Note an error, with the last line of a file that led to it."""
        steps = traceback.extract_tb(error.__traceback__)
        lines = [step.lineno for step in steps if Path(step.filename).name == path.name]
        if isinstance(error, SyntaxError) and error.lineno:
            lines.append(error.lineno)
        kind = type(error).__name__
        self._error = {"kind": kind, "message": str(error), "line": lines[-1] if lines else None}
        self._save()
        place = error.__traceback__
        while place and place.tb_frame.f_code.co_filename == __file__:
            place = place.tb_next  # the frames of this file say nothing of the user's
        traceback.print_exception(error.with_traceback(place or error.__traceback__))

    def _save(self) -> None:
        facts = {name: value for name, value in vars(self).items() if name[0] != "_"}
        text = json.dumps({**facts, "error": self._error})
        draft = self._folder / "report.draft"
        draft.write_text(text)
        draft.replace(self._folder / "report.json")

    def write(self, stem: str, results: Any) -> list[list[str]]:
        """Write the arrays of a result; return the name and the type of each."""
        arrays = []
        for number, (name, value) in enumerate(named(results)):
            np.save(self._folder / f"{stem}.{number}.npy", to_array(value), allow_pickle=False)
            arrays.append([name or "out", str(getattr(value, "dtype", "")).rpartition(".")[2]])
        return arrays

    def read(self, number: int, like: Any) -> Any:
        """Return the solution's result of a case, in the form of the reference's."""
        leaves = [value for _, value in named(like)]
        count = len([*self._folder.glob(f"solution{number}.*.npy")])
        if count != len(leaves):
            raise ValueError(f"{count} arrays are returned, expected {len(leaves)}")
        values = iter([
            _as_leaf(np.load(self._folder / f"solution{number}.{place}.npy"), leaf)
            for place, leaf in enumerate(leaves)
        ])  # fmt: skip
        return _refilled(like, values)


def _as_leaf(array: Any, like: Any) -> Any:
    """Return an array as what a reference returned: a tensor on its device, or an array."""
    if array.shape != tuple(getattr(like, "shape", array.shape)):
        raise ValueError(f"{array.shape} is not the shape {tuple(like.shape)}")
    torch = sys.modules.get("torch")
    if torch and isinstance(like, torch.Tensor):
        return torch.from_numpy(array).to(like.dtype).to(like.device)
    return array


def _refilled(like: Any, values: Iterator[Any]) -> Any:
    if isinstance(like, Mapping):
        return {key: _refilled(each, values) for key, each in like.items()}
    if isinstance(like, (tuple, list)):
        return type(like)(_refilled(each, values) for each in like)
    return next(values)


def arguments(words: Sequence[str]) -> Mapping[str, Any]:
    """Return the settings: one JSON object."""
    settings: dict[str, Any] = json.loads(words[1])
    sizes = {name: ast.literal_eval(text) for name, text in settings["sizes"].items()}
    return {**settings, "sizes": sizes}


if __name__ == "__main__":
    main(arguments(sys.argv))

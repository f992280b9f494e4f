"""Compare machine code with PTX, over what ptxas makes of it for each architecture.

    scripts/compare_code.py [sm_80 ...] [--gallery] [--programs] [--forms] [--random N] [--jobs J]

What a kernel leaves in memory and prints has to be equal: the gallery's, programs' of
tests/programs, each form of an instruction in tests/golden/ptx and tests/validate/instructions, and
N random kernels, a quarter each of PTX, of flow graphs, of CUDA C, and of sequences that a GPU has
run. All are assembled without fused multiply-adds, which PTX leaves open. `--engine compiled`
compiles every kernel. Needs ptxas and nvdisasm, and no GPU.
"""

import argparse
import io
import os
import re
import runpy
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache, lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "traces" / "gallery"
sys.path.insert(0, str(ROOT / "tests"))

from engines import compiled_where_known  # noqa: E402
from fuzz.cuda.check import difference  # noqa: E402
from fuzz.cuda.compiler import NotC, to_ptx  # noqa: E402
from fuzz.cuda.engine import run as run_cuda  # noqa: E402
from fuzz.cuda.kernel import make_kernel  # noqa: E402
from fuzz.cuda.oracle import Building  # noqa: E402
from fuzz.flow_graph import make_graph, walk  # noqa: E402
from fuzz.flow_graph import to_ptx as graph_to_ptx  # noqa: E402
from fuzz.run import check, without_assembler  # noqa: E402
from fuzz.sequence import LANES, operands  # noqa: E402
from fuzz.strategy import programs  # noqa: E402
from fuzz.syntax import Program  # noqa: E402
from fuzz.writer import write as write_program  # noqa: E402
from ptx.ptx_case import SCRATCH, Case, kernel_text, read_cases, stored_dtype  # noqa: E402
from ptx.ptx_run import HEADER, run_kernel  # noqa: E402
from ptx.ptx_values import operands as operands_of  # noqa: E402
from validate.test_conformance import close  # noqa: E402

import cutrace  # noqa: E402
from cutrace.base.errors import CutraceError  # noqa: E402
from cutrace.base.interrupt import interrupt  # noqa: E402
from cutrace.tracer.front.resources import assemble_for  # noqa: E402
from cutrace.tracer.ptx.link import link_kernel  # noqa: E402
from cutrace.tracer.sass import cubin as files  # noqa: E402
from cutrace.tracer.sass import kernel as machine  # noqa: E402
from cutrace.tracer.sass.cubin import Cubin, open_cubin  # noqa: E402
from cutrace.tracer.session import kernel_facts, module  # noqa: E402
from cutrace.tracer.session.record_options import (  # noqa: E402
    CODES,
    RecordOptions,
    default_options,
)
from cutrace.tracer.session.source.launch_line import find_launch_comments  # noqa: E402
from cutrace.tracer.session.source.record import record  # noqa: E402

BATCH = 40
"""Forms that are assembled together, and random kernels of a task."""

CLUSTERS = 90
"""The first architecture that has clusters."""

TURNS = 8
"""Tasks of a process: then a new one begins, for compiled code is never unloaded."""

Outcome = tuple[str, str]
"""The name of a kernel, and how its machine code differs: "" where it does not."""


def main() -> int:
    """Run all; 1 if any differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("code", nargs="*", default=CODES[1:])
    parser.add_argument("--engine", default="auto", choices=["array", "compiled", "auto"])
    parser.add_argument("--gallery", action="store_true")
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    tasks = [task for code in asked.code for task in tasks_of(asked, code)]
    outcomes, start = Counter[str](), time.monotonic()
    with get_context("spawn").Pool(asked.jobs, maxtasksperchild=TURNS) as pool:
        for found in pool.imap_unordered(run_task, tasks):
            for name, problem in found:
                tell(outcomes, name, problem)
    print(f"{dict(outcomes)}, {time.monotonic() - start:.0f} s")
    return 1 if outcomes["different"] else 0


Task = tuple[Callable[..., list[Outcome]], tuple[Any, ...]]


def tasks_of(asked: argparse.Namespace, code: str) -> Iterator[Task]:
    """Yield what is to be done for an architecture."""
    engine, count = asked.engine, asked.random // 4 // len(asked.code)
    if asked.gallery:
        for source in sorted(GALLERY.glob("*/*.ptx")):
            if find_launch_comments(source.read_text()):
                yield compare, (source, code, engine)
        for script in sorted(GALLERY.glob("*/*.py")):
            if script.name != "reference.py":
                yield run_script, (script, code, engine)
    if asked.programs:
        for source in sorted((ROOT / "tests" / "programs").glob("*.cu")):
            yield run_program, (source, code, engine)
    if asked.forms:
        for first in range(0, len(cases()), BATCH):
            yield compare_forms, (first, code, engine)
    for first in range(0, count, BATCH):
        number = min(BATCH, count - first)
        for one in (try_random, try_graphs, try_cuda, try_sequences):
            yield one, (code, engine, asked.seed + first, number)


SECONDS = 60
"""A kernel that takes longer, of its process, hangs."""


def _give_up(number: int, frame: FrameType | None) -> None:
    interrupt(CutraceError(f"not done after {SECONDS} seconds"))


@contextmanager
def limited() -> Iterator[None]:
    """Give up a kernel that hangs: a random one may wait for what never comes."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_task(task: Task) -> list[Outcome]:
    """Run a task in a process of its own."""
    act, arguments = task
    with compiled_where_known() if "compiled" in arguments else patch.dict({}):
        return act(*(("auto" if each == "compiled" else each) for each in arguments))


def tell(outcomes: Counter[str], name: str, problem: str) -> None:
    """Count an outcome, and print what is not equal."""
    kind = "equal" if not problem else "refused" if "does not know" in problem else "different"
    if re.search(r"NVIDIA's assembler (refuses|crashed|did not finish)|not assembled", problem):
        outcomes["not assembled"] += 1
        return
    outcomes[kind] += 1
    if problem:
        print(f"{name}: {problem.splitlines()[0][:300]}", flush=True)


# The gallery and programs


def compare(source: Path, code: str, engine: str) -> list[Outcome]:
    """Compare a PTX source of the gallery."""
    try:
        same = run(source, "ptx", "auto") == run(source, code, engine)
        return [(f"{source.stem} {code}", "" if same else "other values")]
    except CutraceError as error:
        return [(f"{source.stem} {code}", str(error))]


def run(source: Path, code: str, engine: str) -> tuple[dict[str, bytes], str]:
    """Return what a source's launches leave in each array, and print."""
    values: dict[str, Any] = {}
    options = RecordOptions(code=code, engine=engine, final_values=values)
    with (
        TemporaryDirectory() as folder,
        default_options(options),
        redirect_stdout(io.StringIO()) as said,
    ):
        record(source, (), Path(folder, "t.cutrace"))
    return {name: array.tobytes() for name, array in values.items()}, said.getvalue()


def run_script(script: Path, code: str, engine: str) -> list[Outcome]:
    """Run a script of the gallery, which checks its own results."""
    before, problem = Path.cwd(), ""
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            with default_options(RecordOptions(code=code, engine=engine)):
                runpy.run_path(str(script), run_name="__main__")
        except (AssertionError, CutraceError) as error:
            problem = str(error).strip() or type(error).__name__
        finally:
            os.chdir(before)
    return [(f"{script.stem} {code}", problem)]


def run_program(source: Path, code: str, engine: str) -> list[Outcome]:
    """Run the kernels of a test's CUDA source by the script beside it, which checks them."""
    script = source.with_suffix(".py")
    before, problem = Path.cwd(), ""
    name = f"{source.stem} {code}"
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), without_fusing():
        os.chdir(folder)
        sys.path.insert(0, str(source.parent))
        try:
            with default_options(RecordOptions(code=code, engine=engine)):
                space = runpy.run_path(str(script))
                for test, act in [*space.items()]:
                    if test.startswith("test_") or test == "main":
                        act()
        except (AssertionError, CutraceError) as error:
            problem = str(error).strip() or type(error).__name__
        finally:
            os.chdir(before)
    return [(name, problem)]


@contextmanager
def without_fusing() -> Iterator[None]:
    """Assemble what a session runs without fused multiply-adds."""
    made = kernel_facts.known_machine_code

    def assemble(ptx: str, name: str, arch: str, options: tuple[str, ...]) -> Any:
        return made(ptx, name, arch, (*options, "-fmad=false"))

    with patch.object(module, "known_machine_code", assemble):
        yield


# Forms of instructions


@cache
def cases() -> list[Case]:
    """The forms of all tables, each of one instruction."""
    tables = [*(ROOT / "tests" / "golden" / "ptx").glob("*.txt")]
    tables += (ROOT / "tests" / "validate" / "instructions").glob("*.txt")
    texts = [re.sub(r" \| .*", "", path.read_text()) for path in sorted(tables)]
    return [*{case.text: case for text in texts for case in read_cases(text)}.values()]


def compare_forms(first: int, code: str, engine: str) -> list[Outcome]:
    """Compare some forms, assembled together where ptxas takes all."""
    some = cases()[first : first + BATCH]
    names = [f"case{number}" for number in range(len(some))]
    texts = [
        assemblable(kernel_text(case, name), code) for case, name in zip(some, names, strict=True)
    ]
    arch = {"sm_90": "sm_90a", "sm_100": "sm_100a", "sm_120": "sm_120a"}.get(code, code)
    cubins = _assembled(dict(zip(names, texts, strict=True)), arch)
    found = []
    for case, name, text in zip(some, names, texts, strict=True):
        problem = "not assembled"
        if name in cubins:
            try:
                with limited():
                    problem = _compare_form(case, name, text, arch, engine, cubins[name])
            except CutraceError as error:
                problem = str(error)
        found.append((f"{case.text} {code}", problem))
    return found


def _assembled(texts: dict[str, str], arch: str) -> dict[str, bytes]:
    """Return the cubin that has each kernel; none for one that ptxas refuses."""
    if not texts:
        return {}
    head = HEADER.replace("8.6", "8.8").replace("sm_90a", arch)
    try:
        cubin = assemble_for(head + "".join(texts.values()), arch, ("-lineinfo", "-fmad=false"))
        return dict.fromkeys(texts, cubin)
    except CutraceError as error:
        refused = {int(line) for line in re.findall(r", line (\d+); error", str(error))}
    accepted, line = {}, head.count("\n") + 1
    for name, text in texts.items():
        end = line + text.count("\n")
        if refused.isdisjoint(range(line, end)):
            accepted[name] = text
        line = end
    if len(accepted) < len(texts):
        return _assembled(accepted, arch)
    if len(texts) == 1:
        return {}
    parts = [*texts.items()]  # an error of no line
    middle = len(parts) // 2
    return _assembled(dict(parts[:middle]), arch) | _assembled(dict(parts[middle:]), arch)


_disassemble = files._disassemble


@lru_cache(maxsize=2)
def _disassembled(data: bytes) -> list[Any]:
    whole = open_cubin(data)
    names = [name for name in whole.sections if name.startswith(".text.")]
    return _disassemble(whole, names)


def _listed(whole: Cubin, names: Sequence[str]) -> list[Any]:
    """Return nvdisasm's functions, of which it lists all of a cubin as fast as one."""
    header, functions = _disassembled(whole.data)
    return [header, [each for each in functions if f".text.{each['function-name']}" in names]]


def _compare_form(case: Case, name: str, text: str, arch: str, engine: str, cubin: bytes) -> str:
    sources = operands_of(case.sources)
    lanes = len(sources[0]) if sources else 32
    outputs = [np.zeros(lanes, stored_dtype(kind)) for kind in case.results]
    arrays = [*sources, *outputs, np.zeros(lanes * SCRATCH, np.uint8)]
    ptx = HEADER.replace("8.6", "8.8").replace("sm_90a", arch) + text
    wanted = run_kernel(ptx, name, lanes, arrays, engine="auto")
    with (
        patch("ptx.ptx_run.link_kernel", partial(_machine, ptx, arch, cubin)),
        patch.object(files, "_disassemble", _listed),
    ):
        left = run_kernel(ptx, name, lanes, arrays, engine=engine)
    for kind, ours, theirs in zip(case.results, left[len(sources) :], wanted[len(sources) :],
                                  strict=False):  # fmt: skip
        wrong = np.flatnonzero(~close(case, kind, ours, theirs, sources))
        if wrong.size:
            lane = int(wrong[0])
            given = [hex(int(each[lane])) for each in sources if each.dtype.kind == "u"]
            return (f"{wrong.size} of {lanes}: {kind} of {given} is {ours[lane]}, "
                    f"PTX gives {theirs[lane]}")  # fmt: skip
    return "" if left[-1].tobytes() == wanted[-1].tobytes() else "other memory"


def _machine(ptx: str, arch: str, cubin: bytes | None, parsed: Any, name: str) -> Any:
    like = link_kernel(parsed, name)
    made = (lambda *_: cubin) if cubin else assemble_for
    with patch.object(machine, "assemble_for", made):
        return machine.machine_kernel(ptx, parsed, like, arch, ("-fmad=false",)).kernel


# Random kernels


def try_random(code: str, engine: str, first: int, count: int) -> list[Outcome]:
    """Compare random kernels of PTX with the reference."""
    found: list[Outcome] = []

    @seed(first)
    @settings(
        max_examples=count, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs())
    def one(program: Program) -> None:
        problem = ""
        try:
            with (
                TemporaryDirectory() as folder,
                default_options(RecordOptions(code=code)),
                without_fusing(),
                without_assembler(),
                with_open_nans(),
                limited(),
            ):
                check(program, Path(folder), engine)
        except (AssertionError, CutraceError) as error:
            problem = str(error) or "an assertion"
        found.append((f"random kernel {first} {code}", problem))

    one()
    return found


_FOLDED = re.compile(
    r"bfe\.s\d+ %\w+, %?\w+, (3[2-9]|[4-9]\d|\d{3,}),|sh[lr]\.[bus]16 %\w+, %?\w+, \d{6,};"
)
"""A field from behind the last bit on: all bits of the sign, of which ptxas 12.9 makes -1. And a
shift of 16 bits, of whose number it takes the lower 16 bits: by 2^31 it is none."""


@contextmanager
def with_open_nans() -> Iterator[None]:
    """Take any NaN for another: what `neg`, `abs` and `min` make of one is open, and ptxas leaves
    some of them out."""

    def write(program: Program) -> str:
        text = write_program(program)
        if _FOLDED.search(text):
            raise CutraceError("not assembled: ptxas 12.9 computes this bfe or shift otherwise")
        return text

    with patch("fuzz.run.write", write), patch("fuzz.run.same", _same):
        yield


_INFINITIES = {"f": 0x7F800000, "g": 0x7FF0000000000000}


def _same(name: str, ours: int, theirs: int) -> bool:
    infinity = _INFINITIES.get(name[0])
    if infinity is None or ours == theirs:
        return ours == theirs
    sign = 1 << infinity.bit_length()
    return min(ours & ~sign, theirs & ~sign) > infinity


def try_graphs(code: str, engine: str, first: int, count: int) -> list[Outcome]:
    """Compare random flow graphs with the walks of their lanes."""
    return [
        (f"flow graph {number} {code}", _try_graph(code, engine, number))
        for number in range(first, first + count)
    ]


def _try_graph(code: str, engine: str, number: int) -> str:
    nodes, lanes, start = make_graph(Random(number)), 96, 12345
    text = graph_to_ptx(nodes)
    if code == "sm_75":
        text = text.replace("sm_80", "sm_75")
    wanted = [walk(nodes, lane, start) for lane in range(lanes)]
    options = RecordOptions(code=code, engine=engine, max_instructions=1 << 22)
    try:
        with default_options(options), without_assembler(), limited(), cutrace.Session() as gpu:
            out = gpu.device_array(lanes, np.uint32)
            gpu.load_ptx(text).get_function("k")[1, lanes](out, np.uint32(start))
            left = out.copy_to_host().tolist()
    except CutraceError as error:
        return str(error)
    return "" if left == wanted else "other values"


def try_cuda(code: str, engine: str, first: int, count: int) -> list[Outcome]:
    """Compare random kernels of CUDA C with their PTX."""
    kernels = [make_kernel(number) for number in range(first, first + count)]
    if int(code.removeprefix("sm_")) < CLUSTERS:
        kernels = [each for each in kernels if each.launch.cluster == (1, 1, 1)]
    try:
        ptx = to_ptx(kernels, "")
    except Exception as error:
        return [(f"CUDA C {first} {code}", f"not assembled: {error}")]
    text = re.sub(r"\.target sm_\d+a?", f".target {code}", ptx)
    found = []
    for kernel in kernels:
        problem = ""
        try:
            with TemporaryDirectory() as folder, without_fusing(), limited():
                wanted = run_cuda(kernel, ptx, Path(folder) / "p.cutrace", "auto")
                with default_options(RecordOptions(code=code)):
                    left = run_cuda(kernel, text, Path(folder) / "m.cutrace", engine)
            odd = [n for n in wanted if wanted[n].tobytes() != left[n].tobytes()]
            problem = _unlike(kernel, left, odd) if odd else ""
        except CutraceError as error:
            problem = str(error)
        found.append((f"CUDA C {kernel.name} {code}", problem))
    return found


def _unlike(kernel: Any, left: Any, odd: list[str]) -> str:
    """Return how arrays differ from what any order of the threads leaves, by g++ if it is there."""
    try:
        (wanted,) = Building([kernel]).results()
        return wanted if isinstance(wanted, str) else difference(left, wanted)
    except (OSError, NotC):
        return f"other values in {', '.join(odd)}"


@cache
def sequences() -> list[dict[str, Any]]:
    """The sequences of instructions that a GPU has run."""
    rows: list[dict[str, Any]] = pq.read_table(
        ROOT / "tests" / "validate" / "sequences.parquet"
    ).to_pylist()
    return rows


def assemblable(ptx: str, code: str) -> str:
    """Return PTX without what ptxas 12.9 assembles to code that computes something else.

    For 12.0 it adds the negated subtrahend of `sub.sat.s32`, which for -2^31 is no negation. Before
    9.0, which does not have it, `cvt.ftz.f32.bf16` becomes a conversion of an f16.
    """
    if code == "sm_120":
        ptx = ptx.replace("sub.sat.s32", "add.sat.s32")
    if int(code.removeprefix("sm_")) < 90:
        ptx = ptx.replace("cvt.ftz.f32.bf16", "cvt.f32.bf16")
    return ptx


def try_sequences(code: str, engine: str, first: int, count: int) -> list[Outcome]:
    """Compare sequences of instructions with their PTX."""
    found = []
    for number in range(first, first + count):
        row = sequences()[number % len(sequences())]
        columns = operands(row["number"], row["kinds"])
        arrays = [columns.reshape(-1), np.zeros(len(row["registers"]) * LANES, np.uint64)]
        ptx = HEADER.replace("8.6", "8.8").replace("sm_90a", code)
        ptx += assemblable(row["ptx"], code)
        problem = ""
        try:
            with limited():
                wanted = run_kernel(ptx, "k", LANES, arrays, engine="auto")
                with patch("ptx.ptx_run.link_kernel", partial(_machine, ptx, code, None)):
                    left = run_kernel(ptx, "k", LANES, arrays, engine=engine)
            both = zip(row["registers"], row["hashes"], *(
                each[1].reshape(-1, LANES) for each in (left, wanted)), strict=True)  # fmt: skip
            # What has no hash is open: results of approximate functions.
            odd = [name for name, kept, ours, theirs in both
                   if kept is not None and ours.tobytes() != theirs.tobytes()]  # fmt: skip
            problem = f"other values in {', '.join(odd)}" if odd else ""
        except CutraceError as error:
            problem = str(error)
        found.append((f"sequence {row['number']} {code}", problem))
    return found


if __name__ == "__main__":
    sys.exit(main())

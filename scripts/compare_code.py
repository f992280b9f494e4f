"""Compare machine code with PTX: `scripts/compare_code.py [sm_80 ...] [--engine E] [--random N]`.

Each kernel of the gallery, and N random ones, run as PTX and as the machine code that ptxas makes
of it for each architecture: what they leave in memory and print has to be equal. The gallery's
scripts check their own results. Random kernels are assembled without fused multiply-adds, which PTX
leaves open, and compared with a scalar reference.
"""

import argparse
import io
import os
import runpy
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "traces" / "gallery"
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.run import check, without_assembler  # noqa: E402
from fuzz.strategy import programs  # noqa: E402
from fuzz.syntax import Program  # noqa: E402

from cutrace.base.errors import CutraceError  # noqa: E402
from cutrace.tracer.session import kernel_facts, module  # noqa: E402
from cutrace.tracer.session.record_options import (  # noqa: E402
    CODES,
    RecordOptions,
    default_options,
)
from cutrace.tracer.session.source.launch_line import find_launch_comments  # noqa: E402
from cutrace.tracer.session.source.record import record  # noqa: E402


def main() -> int:
    """Run all; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("code", nargs="*", default=CODES[1:])
    parser.add_argument("--engine", default="auto", choices=["array", "compiled", "auto"])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    outcomes = Counter[str]()
    for code in asked.code:
        for source in sorted(GALLERY.glob("*/*.ptx")):
            if find_launch_comments(source.read_text()):
                tell(outcomes, source.stem, code, compare(source, code, asked.engine))
        for script in sorted(GALLERY.glob("*/*.py")):
            if script.name != "reference.py":
                tell(outcomes, script.stem, code, run_script(script, code, asked.engine))
        try_random(outcomes, code, asked.engine, asked.random, asked.seed)
    print(dict(outcomes))
    return 1 if outcomes["different"] else 0


def tell(outcomes: Counter[str], name: str, code: str, problem: str) -> None:
    """Count an outcome, and print what is not equal."""
    kind = "equal" if not problem else "refused" if "does not know" in problem else "different"
    outcomes[kind] += 1
    if problem:
        print(f"{name} {code}: {problem.splitlines()[0][:300]}", flush=True)


def compare(source: Path, code: str, engine: str) -> str:
    """Return how machine code differs from PTX."""
    try:
        return "" if run(source, "ptx", "auto") == run(source, code, engine) else "other values"
    except CutraceError as error:
        return str(error)


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


def run_script(script: Path, code: str, engine: str) -> str:
    """Return why a script of the gallery fails."""
    before = Path.cwd()
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            with default_options(RecordOptions(code=code, engine=engine)):
                runpy.run_path(str(script), run_name="__main__")
        except (AssertionError, CutraceError) as error:
            return str(error).strip() or type(error).__name__
        finally:
            os.chdir(before)
    return ""


def try_random(outcomes: Counter[str], code: str, engine: str, count: int, first: int) -> None:
    """Compare random kernels with the reference."""
    made = kernel_facts.known_machine_code

    @seed(first)
    @settings(
        max_examples=max(count, 1), deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs())
    def one(program: Program) -> None:
        problem = ""
        try:
            with (
                TemporaryDirectory() as folder,
                default_options(RecordOptions(code=code)),
                patch.object(
                    module,
                    "known_machine_code",
                    lambda ptx, name, arch, options: made(
                        ptx, name, arch, (*options, "-fmad=false")
                    ),
                ),
                without_assembler(),
            ):
                check(program, Path(folder), engine)
        except (AssertionError, CutraceError) as error:
            problem = str(error) or "an assertion"
        if "NVIDIA's assembler refuses" in problem:
            outcomes["not assembled"] += 1
        else:
            tell(outcomes, "random kernel", code, problem)

    if count:
        one()


if __name__ == "__main__":
    sys.exit(main())

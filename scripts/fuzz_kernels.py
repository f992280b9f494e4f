"""Look for kernels on which cutrace errs: `scripts/fuzz_kernels.py [--kernels N] [--mutations N]`.

Random kernels are compared with a scalar reference, in either engine; mutated PTX has to run or to
be refused in one sentence, soon; sequences of instructions have to leave what a GPU left. The tests
do the same to a few: tests/fuzz, tests/validate. What fails is written to the folder of `--out`.
"""

import argparse
import resource
import signal
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from cases.sequence_case import CAPTURED, differences  # noqa: E402
from cases.sequence_run import run_sequence  # noqa: E402
from fuzz.nearly import nearly, refusal  # noqa: E402
from fuzz.run import check  # noqa: E402
from fuzz.strategy import programs  # noqa: E402
from fuzz.syntax import Program  # noqa: E402
from fuzz.writer import write  # noqa: E402

SECONDS = 10
"""A mutated text that takes longer hangs."""

MEMORY = 1 << 20
"""KiB that a mutated text may take, beyond what the first one left."""


def main() -> int:
    """Run both searches; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default="array", choices=["array", "compiled", "auto"])
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"))
    asked = parser.parse_args()
    found = try_kernels(asked.kernels, asked.seed, asked.engine, asked.out)
    found += try_mutations(asked.mutations, asked.seed, asked.engine, asked.out)
    found += try_sequences(asked.sequences, asked.engine)
    return 1 if found else 0


def try_kernels(count: int, first: int, engine: str, out: Path) -> int:
    """Compare random kernels with the reference; return how many differ."""
    failed: list[Program] = []

    @seed(first)
    @settings(
        max_examples=max(count, 1), deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs())
    def one(program: Program) -> None:
        try:
            with TemporaryDirectory() as folder:
                check(program, Path(folder), engine)
        except Exception as error:
            failed.append(program)
            keep(out, f"kernel{len(failed)}.ptx", write(program), error)

    if count:
        one()
    print(f"{count} kernels, {len(failed)} differ")
    return len(failed)


def try_mutations(count: int, first: int, engine: str, out: Path) -> int:
    """Load and launch mutated PTX; return how many end in anything but a sentence.

    Every second one is mutated from what NVRTC makes of a program.
    """
    failed = 0
    signal.signal(signal.SIGALRM, _give_up)
    refusal(nearly(first), engine), nearly(first, real=True)  # what all need is there then
    most = _most_memory() + MEMORY
    for number in range(first, first + count):
        text = nearly(number, real=bool(number % 2))
        signal.alarm(SECONDS)
        try:
            refusal(text, engine)
            if _most_memory() > most:
                most = 1 << 60
                raise MemoryError(f"it takes more than {MEMORY} KiB")
        except Exception as error:
            failed += 1
            keep(out, f"mutation{number}.ptx", text, error)
        finally:
            signal.alarm(0)
    print(f"{count} mutations, {failed} fail")
    return failed


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def try_sequences(count: int, engine: str) -> int:
    """Compare captured sequences with what a GPU left; return how many differ."""
    failed = 0
    for row in pq.read_table(CAPTURED).to_pylist()[:count]:
        found = differences(row, run_sequence(row, engine))
        failed += bool(found)
        print(*found[:1], sep="\n", end="\n" * bool(found), flush=True)
    print(f"{count} sequences, {failed} differ")
    return failed


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not done after {SECONDS} seconds")


def keep(out: Path, name: str, text: str, error: Exception) -> None:
    """Write a text with the reason why it is kept."""
    out.mkdir(parents=True, exist_ok=True)
    reason = "".join(f"// {line}\n" for line in traceback.format_exception(error)[-2:])
    (out / name).write_text(reason.replace("\n ", "\n//  ") + text, encoding="utf-8")
    print(f"{out / name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

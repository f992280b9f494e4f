"""Run random CUDA C kernels: `scripts/fuzz N [--seed S] [--jobs J] [--minutes M] [--out DIR]`.

Each is compiled by g++, one thread after another, and by NVRTC; both engines must leave what the
oracle leaves, and the same trace. A kernel that differs is made small and written to a file that
says what is wrong. At the end: how many ran compiled, why the others did not, and how fast it went.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.cuda import found  # noqa: E402
from fuzz.cuda.check import Found, How, check_kernels, same_failure  # noqa: E402
from fuzz.cuda.compiler import NotC  # noqa: E402
from fuzz.cuda.kernel import make_kernel  # noqa: E402
from fuzz.cuda.reduce import reduce  # noqa: E402
from fuzz.cuda.tree import Kernel  # noqa: E402

BATCH = 25
"""Kernels that are compiled together."""
PERIOD = 30
"""Seconds between two lines that tell how far it is."""
MOST_REDUCED = 10
"""Failures that are made small; more are kept as they are."""
TURNS = 8
"""Batches of a process: then a new one begins, for compiled code is never unloaded. A pool that
renews its processes by itself (`max_tasks_per_child`) stood still on Python 3.12."""
SPAWN = get_context("spawn")


def main() -> int:
    """Run as many as asked; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--seconds", type=float, default=240, help="to make one failure small")
    parser.add_argument("--minutes", type=float, default=1e6, help="end after so long")
    parser.add_argument("--quick", action="store_true", help="do not optimise machine code")
    parser.add_argument("--nvcc", default="", help="compile by this nvcc, not by NVRTC")
    parser.add_argument("--chip", action="store_true", help="ask a real GPU, too (CuPy)")
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.show:
        for seed in seeds:
            print(found.describe(make_kernel(seed), "not run", ""))
        return 0
    how = How(quick=asked.quick, nvcc=asked.nvcc, chip=asked.chip)
    limits = Limits(asked.seconds, time.monotonic() + 60 * asked.minutes)
    return search(seeds, asked.jobs, asked.out, how, limits)


def search(seeds: range, jobs: int, out: Path, how: How, limits: "Limits") -> int:
    """Run the kernels of some seeds, make failures small, and print what became of all."""
    tally = Tally()
    for outcome in outcomes(seeds, jobs, how, limits.end):
        tally.note(outcome)
        if outcome.kind:
            left = max(0.0, min(limits.seconds, limits.end - time.monotonic()))
            report(outcome, out, left if tally.failed <= MOST_REDUCED else 0, how)
        tally.tell()
    tally.tell(last=True)
    return int(tally.failed > 0)


@dataclass(frozen=True)
class Limits:
    """How long to go on."""

    seconds: float
    """To make one failure small."""
    end: float
    """When the whole run ends, by the monotonic clock."""


class Tally:
    """What became of the kernels so far."""

    def __init__(self) -> None:
        self.began = self.told = time.monotonic()
        self.done = self.failed = 0
        self.kinds, self.refused = Counter[str](), Counter[str]()

    def note(self, outcome: Found) -> None:
        """Count a kernel."""
        self.done += 1
        self.failed += bool(outcome.kind)
        if outcome.kind:
            self.kinds[outcome.kind] += 1
        if outcome.refused:
            self.refused[reason(outcome.refused)] += 1

    def tell(self, last: bool = False) -> None:
        """Print the sums every PERIOD seconds; at the end the reasons of refusals, too."""
        now = time.monotonic()
        if not last and now - self.told < PERIOD:
            return
        self.told, spent = now, now - self.began
        compiled = 100 * (self.done - self.refused.total()) / max(self.done, 1)
        print(
            f"{self.done} kernels in {spent:.0f} s, {self.done / spent:.1f} a second: "
            f"{self.failed} differ, {compiled:.1f} % ran compiled",
            flush=True,
        )
        for title, counts in (("differ", self.kinds), ("refused", self.refused)) if last else ():
            for what, count in counts.most_common():
                print(f"{count:7}  {title}: {what}")


def outcomes(seeds: range, jobs: int, how: How, end: float) -> Iterator[Found]:
    """What became of each kernel, in any order, until the time is over.

    A batch that ends its process, or that raises, is cut in halves until one kernel is left.
    """
    batches = [seeds[k : k + BATCH] for k in range(0, len(seeds), BATCH)]
    while batches and time.monotonic() < end:
        lost: list[range] = []
        turn, batches = batches[: TURNS * jobs], batches[TURNS * jobs :]
        with ProcessPoolExecutor(jobs, SPAWN) as pool:
            running = {pool.submit(check_seeds, batch, how): batch for batch in turn}
            try:
                for job in as_completed(running, timeout=max(0.0, end - time.monotonic())):
                    problem = job.exception()
                    if problem is None:
                        yield from job.result()
                    elif len(running[job]) > 1 or isinstance(problem, BrokenProcessPool):
                        lost.append(running[job])
                    else:
                        kernel = make_kernel(running[job][0])
                        yield Found(kernel, "error", f"{type(problem).__name__}: {problem}")
            except TimeoutError:
                pool.shutdown(wait=False, cancel_futures=True)
                return
        yield from _killers([batch for batch in lost if len(batch) == 1], how)
        batches = [half for b in lost if len(b) > 1 for half in _halves(b)] + batches


def _halves(batch: range) -> tuple[range, range]:
    return batch[: len(batch) // 2], batch[len(batch) // 2 :]


def _killers(batches: list[range], how: How) -> Iterator[Found]:
    """Kernels that ended with others or by themselves: each once more, alone."""
    for batch in batches:
        with ProcessPoolExecutor(1, SPAWN) as pool:
            try:
                yield from pool.submit(check_seeds, batch, how).result()
            except BrokenProcessPool:
                yield Found(make_kernel(batch[0]), "killed", "ended the process that ran it")


def check_seeds(seeds: range, how: How) -> list[Found]:
    """Run the kernels of some seeds, here; what is no C is the generator's fault."""
    try:
        return check_kernels([make_kernel(seed) for seed in seeds], how)
    except NotC as problem:
        if len(seeds) == 1:
            return [Found(make_kernel(seeds[0]), "generator", str(problem))]
        return [found for half in _halves(seeds) for found in check_seeds(half, how)]


def reason(refused: str) -> str:
    """Why the compiled engine refuses, without the kernel's name and registers."""
    said = refused.split("the compiled engine", 1)[-1].split(" (PTX line")[0].strip()
    if "this instruction: `" in said:
        return said.split("`")[1].split()[0 if "`@" not in said else 1]
    return said.split("`")[0]


def report(outcome: Found, out: Path, seconds: float, how: How) -> None:
    """Make a failure small, print it and keep it."""
    kernel = outcome.kernel
    assert isinstance(kernel, Kernel)
    print(f"seed {kernel.seed}: {outcome.kind}: {outcome.text}", flush=True)
    path = out / f"{outcome.kind.replace(' ', '_')}_{kernel.seed}.cu"
    found.write(path, kernel, outcome.kind, outcome.text)
    if outcome.kind not in ("killed", "error", "generator") and seconds:
        with ProcessPoolExecutor(1, SPAWN) as pool, suppress(BrokenProcessPool):
            again = pool.submit(make_small, outcome, seconds, how).result()
            found.write(path, again.kernel, again.kind, again.text)
    print(f"    {path}: {len(path.read_text().splitlines())} lines", flush=True)


def make_small(outcome: Found, seconds: float, how: How) -> Found:
    """The failure with as small a kernel as is found in time."""
    assert isinstance(outcome.kernel, Kernel)
    kernel = reduce(outcome.kernel, same_failure(outcome, how), seconds)
    return check_kernels([kernel], how)[0]


if __name__ == "__main__":
    sys.exit(main())

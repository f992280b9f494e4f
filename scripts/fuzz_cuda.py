"""Run random CUDA C kernels: `scripts/fuzz N [--seed S] [--jobs J] [--quick] [--out DIR]`.

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
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.cuda import found  # noqa: E402
from fuzz.cuda.check import Found, check_kernels, code_that_is_not_kept, same_failure  # noqa: E402
from fuzz.cuda.kernel import make_kernel  # noqa: E402
from fuzz.cuda.reduce import reduce  # noqa: E402
from fuzz.cuda.tree import Kernel  # noqa: E402

BATCH = 25
"""Kernels that are compiled together."""
SPAWN = get_context("spawn")


def main() -> int:
    """Run as many as asked; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--seconds", type=float, default=240, help="to make one failure small")
    parser.add_argument("--quick", action="store_true", help="do not optimise machine code")
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.show:
        for seed in seeds:
            print(found.describe(make_kernel(seed), "not run", ""))
        return 0
    return search(seeds, asked.jobs, asked.out, asked.seconds, asked.quick)


def search(seeds: range, jobs: int, out: Path, seconds: float, quick: bool) -> int:
    """Run the kernels of some seeds, make failures small, and print what became of all."""
    began, failures, refused, undefined = time.monotonic(), 0, Counter[str](), 0
    for outcome in outcomes(seeds, jobs, quick):
        if outcome.refused:
            refused[reason(outcome.refused)] += 1
        undefined += outcome.kind == "undefined"
        if outcome.kind:
            failures += 1
            report(outcome, out, seconds)
    spent = time.monotonic() - began
    print(f"{len(seeds)} kernels in {spent:.0f} s: {len(seeds) / spent:.1f} kernels a second")
    print(f"{failures} differ" + (f", {undefined} of them not defined" if undefined else ""))
    compiled = len(seeds) - sum(refused.values())
    print(f"{compiled} ran compiled, {100 * compiled / max(len(seeds), 1):.1f} %")
    for why, count in refused.most_common():
        print(f"{count:7}  {why}")
    return int(failures > 0)


def outcomes(seeds: range, jobs: int, quick: bool) -> Iterator[Found]:
    """What became of each kernel, in any order; a kernel that ends its process is told, too."""
    batches = [seeds[k : k + BATCH] for k in range(0, len(seeds), BATCH)]
    while batches:
        lost: list[range] = []
        with ProcessPoolExecutor(jobs, SPAWN, max_tasks_per_child=8) as pool:
            running = {pool.submit(check_seeds, batch, quick): batch for batch in batches}
            for job in as_completed(running):
                try:
                    yield from job.result()
                except BrokenProcessPool:
                    lost.append(running[job])
        yield from _killers([batch for batch in lost if len(batch) == 1])
        batches = [half for batch in lost if len(batch) > 1 for half in _halves(batch)]


def _halves(batch: range) -> tuple[range, range]:
    return batch[: len(batch) // 2], batch[len(batch) // 2 :]


def _killers(batches: list[range]) -> Iterator[Found]:
    """Kernels that ended with others or by themselves: each once more, alone."""
    for batch in batches:
        with ProcessPoolExecutor(1, SPAWN) as pool:
            try:
                yield from pool.submit(check_seeds, batch).result()
            except BrokenProcessPool:
                yield Found(make_kernel(batch[0]), "killed", "ended the process that ran it")


def check_seeds(seeds: range, quick: bool = False) -> list[Found]:
    """Run the kernels of some seeds, here."""
    with code_that_is_not_kept(quick):
        return check_kernels([make_kernel(seed) for seed in seeds])


def reason(refused: str) -> str:
    """Why the compiled engine refuses, without the kernel's name and registers."""
    said = refused.split("the compiled engine", 1)[-1].split(" (PTX line")[0].strip()
    if "this instruction: `" in said:
        return said.split("`")[1].split()[0 if "`@" not in said else 1]
    return said.split("`")[0]


def report(outcome: Found, out: Path, seconds: float) -> None:
    """Make a failure small, print it and keep it."""
    kernel = outcome.kernel
    assert isinstance(kernel, Kernel)
    print(f"seed {kernel.seed}: {outcome.kind}: {outcome.text}", flush=True)
    again = outcome
    if outcome.kind != "killed" and seconds:
        with code_that_is_not_kept():
            kernel = reduce(kernel, same_failure(outcome), seconds)
            (again,) = check_kernels([kernel])
    path = out / f"{outcome.kind.replace(' ', '_')}_{kernel.seed}.cu"
    found.write(path, kernel, again.kind, again.text)
    print(f"    {path}: {len(kernel.text().splitlines())} lines", flush=True)


if __name__ == "__main__":
    sys.exit(main())

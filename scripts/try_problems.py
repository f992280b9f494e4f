"""Judge solutions of KernelBench's problems, written here, as `cutrace judge` does for a user.

python scripts/try_problems.py CHECKOUT [--only WORD...]

CHECKOUT is a folder with KernelBench's repository, of which nothing is kept here. torch is to be
installed. tests/problems has the solutions: comments name the problem, its sizes, and the
verdict or the cause of a broken one.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

SOLUTIONS = Path(__file__).parents[1] / "tests" / "problems"
HEAD = re.compile(r"# problem: (\S+)\n# sizes: (.*)\n# expect: (\w+)\n")


def judge(solution: Path, checkout: Path) -> tuple[str, str, str]:
    """Return what is expected, what it came to, and why."""
    match = HEAD.match(solution.read_text())
    assert match, solution
    problem = checkout / "KernelBench" / match[1]
    sizes = [f"--size={size}" for size in match[2].split()]
    words = ("judge", str(problem), str(solution), *sizes, "--format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "cutrace", *words], capture_output=True, text=True, check=False
    )
    answer = json.loads(done.stdout)
    if "error" in answer:
        return match[3], "error", answer["error"]["message"]
    return match[3], answer["cause"] or answer["verdict"], answer["reason"]


def main() -> int:
    """Print a row a solution; return how many came to something else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args()
    wrong = 0
    for solution in sorted(SOLUTIONS.glob("*.py")):
        if options.only and not any(word in solution.stem for word in options.only):
            continue
        begin = time.monotonic()
        expected, came, reason = judge(solution, options.checkout)
        wrong += expected != came
        mark = "ok" if expected == came else f"expected {expected}"
        seconds = time.monotonic() - begin
        print(f"{solution.stem:18} {came:8} {mark:18} {seconds:5.1f} s  {reason[:150]}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())

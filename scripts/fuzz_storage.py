"""Kill, fork and starve processes that write traces: `scripts/fuzz_storage.py [--rounds N]`.

What has to hold after each round is in tests/fuzz/storage.py: nothing of other people's is touched,
no half trace is accepted, none is lost, and what the cache answers an empty one answers too.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.storage import do_round, leftovers, world_in  # noqa: E402

TOGETHER = 100
"""Rounds in the same folders: more and more of other people's files are in them."""


def main() -> int:
    """Try so many; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    begin, found, foreign = time.perf_counter(), 0, 0
    last = asked.first + asked.rounds
    for first in range(asked.first, last, TOGETHER):
        folder = tempfile.mkdtemp()  # children run what they inherit for the end of a process
        with world_in(Path(folder)) as world:
            for seed in range(first, min(first + TOGETHER, last)):
                for problem in do_round(world, seed):
                    found += 1
                    print(problem, flush=True)
            for problem in leftovers(world):
                found += 1
                print(f"rounds {first} and on: {problem}", flush=True)
            foreign += len(world.foreign)
        shutil.rmtree(folder)
    took = time.perf_counter() - begin
    print(f"{asked.rounds} rounds in {took:.0f} s, {foreign} foreign files, {found} problems")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Kill, fork and starve processes that write traces: `scripts/fuzz_storage.py [--rounds N]`.

What has to hold after each round is in tests/fuzz/storage.py: nothing of other people's is touched,
no half trace is accepted, none is lost, and what the cache answers an empty one answers too. Of a
hundred rounds twenty run command lines, sessions and a server; each fourth hundred is in a small
file system, which root can mount, that is nearly full.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.storage import (  # noqa: E402
    CORE,
    COSTLY,
    Answer,
    World,
    add_commands,
    do_round,
    leftovers,
    world_in,
)
from fuzz.storage_commands import server  # noqa: E402

TOGETHER = 100
"""Rounds in the same folders: more and more of other people's files are in them."""
SMALL_BYTES = 16 << 20


@contextmanager
def folder_in(is_small: bool) -> Iterator[tuple[Path, bool]]:
    """Make a folder while the body runs, in a small file system if asked and this is root."""
    folder = tempfile.mkdtemp()  # children run what they inherit for the end of a process
    words = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "none", folder]
    is_mounted = is_small and subprocess.run(words, capture_output=True).returncode == 0
    try:
        yield Path(folder), is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", folder], check=True)
        for parent, names, _ in os.walk(folder):  # into what nobody may enter, too
            for path in (Path(parent, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder)


def do_rounds(world: World, seeds: range, costly: int) -> Iterator[str]:
    """Do rounds in one world, the last of which are costly; yield what is wrong."""
    for seed in seeds[: len(seeds) - costly]:
        yield from do_round(world, seed)
    if costly:
        add_commands(world)
        with server(world.here) as world.address:
            for seed in seeds[len(seeds) - costly :]:
                yield from do_round(world, seed, (*CORE, *COSTLY))
    for problem in leftovers(world):
        yield f"rounds {seeds[0]} and on: {problem}"


def main() -> int:
    """Try so many; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--costly", type=int, default=20, help="so many of a hundred")
    asked = parser.parse_args()
    begin, problems, foreign, small = time.perf_counter(), 0, 0, 0
    answers: dict[int, Answer] = {}
    verbs: Counter[str] = Counter()
    last = asked.first + asked.rounds
    for number, first in enumerate(range(asked.first, last, TOGETHER)):
        seeds = range(first, min(first + TOGETHER, last))
        with folder_in(number % 4 == 3) as (folder, is_small), world_in(folder, answers) as world:
            world.is_small = is_small
            small += len(seeds) if is_small else 0
            for problem in do_rounds(world, seeds, 0 if is_small else asked.costly):
                problems += 1
                print(problem, flush=True)
            foreign += len(world.foreign)
            verbs += world.verbs
    took = time.perf_counter() - begin
    print(", ".join(f"{count} {kind}" for kind, count in verbs.most_common()))
    print(f"{small} rounds in a small file system, which root can mount")
    print(f"{asked.rounds} rounds in {took:.0f} s, {foreign} foreign files, {problems} problems")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())

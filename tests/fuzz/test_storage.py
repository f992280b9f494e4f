"""Some rounds of kills, forks and full disks; scripts/fuzz_storage.py does 2,000."""

import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from fuzz.storage import World, add_sessions, do_round, end, leftovers, start, world_in

from cutrace.base import claim

ROUNDS, FORKING = 8, 4

pytestmark = pytest.mark.skipif(not claim.LOCKS, reason="files are not locked here")


def test_rounds_leave_what_is_not_ours_and_whole_traces_alone(tmp_path: Path) -> None:
    with world_in(tmp_path / "world") as world:
        assert [problem for seed in range(ROUNDS) for problem in do_round(world, seed)] == []
        assert leftovers(world) == []
        assert len(world.foreign) > ROUNDS


def test_rounds_of_sessions_that_fork(tmp_path: Path) -> None:
    """Pools, workers of a loader of data, and children that are killed or leave."""
    with world_in(tmp_path / "world") as world:
        add_sessions(world)
        kinds = ("session", "session", "ask")
        assert [
            problem for seed in range(FORKING) for problem in do_round(world, seed, kinds)
        ] == []
        assert leftovers(world) == []


def test_a_round_sees_what_is_touched_and_what_is_left(tmp_path: Path) -> None:
    """By a child that removes by the name alone, as the next process would look."""
    with world_in(tmp_path / "world") as world:
        mine = world.scratch / f"cutrace-{0:032x}"
        mine.mkdir()
        world.add(mine)
        assert (world.touched(), leftovers(world)) == ([], [])
        assert end(start(lambda: _be_killed(world))) == "killed"
        assert leftovers(world) == []
        end(start(lambda: [*map(shutil.rmtree, world.scratch.glob("cutrace-*"))]))
        assert world.touched() == [f"{mine} was touched"]
        (world.scratch / "cutrace-other").mkdir()
        assert leftovers(world) == [f"{world.scratch / 'cutrace-other'} is left"]


def _be_killed(world: World) -> object:
    """Make a claim, and be killed: of what is returned nobody hears."""
    tempfile.tempdir = str(world.scratch)
    made = claim.claim_scratch()
    signal.raise_signal(signal.SIGKILL)
    return made

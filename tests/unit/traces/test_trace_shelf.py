"""What launches have in common is on disk once, and reads as if each had its own."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_trace import instruction, instruction_table, launch

from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify
from cutrace.traces.writer import TraceWriter

CODE = instruction_table([instruction(0)])


def write(path: Path, bases: list[int]) -> None:
    """A launch of one load for each base."""
    with TraceWriter(path) as trace:
        for base in bases:
            with trace.launch(launch()) as rows:
                rows.instructions(CODE)
                rows.patterns([1], [[0] * 32])
                rows.accesses(0, 0, [0], 0, 0, 1, 0x1000_0000 + base, 0)


def bases_of(path: Path) -> list[int]:
    batches = [next(one.access_batches()) for one in read_trace(path).launches]
    return [batch["base"][0].as_py() - 0x1000_0000 for batch in batches]


def test_a_launch_equal_to_an_earlier_one_is_a_link_to_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "x.cutrace", [0, 4, 0, 4])
    links = {n: (tmp_path / f"x.cutrace/{n}") for n in range(4)}
    assert [n for n, path in links.items() if path.is_symlink()] == [2, 3]
    assert [os.readlink(links[2]), os.readlink(links[3])] == ["0", "1"]
    assert bases_of(tmp_path / "x.cutrace") == [0, 4, 0, 4]
    assert not list(verify(read_trace(tmp_path / "x.cutrace")))


def test_a_table_that_an_earlier_launch_has_is_another_name_of_its_file(tmp_path: Path) -> None:
    write(tmp_path / "x.cutrace", [0, 4])
    first, second = tmp_path / "x.cutrace/0", tmp_path / "x.cutrace/1"
    same = {p.name for p in first.iterdir() if p.samefile(second / p.name)}
    assert {p.name for p in first.iterdir()} - same == {"accesses.arrow"}


@pytest.mark.parametrize("missing", [("link",), ("link", "symlink")])
def test_where_there_are_no_links_every_launch_has_its_own_files(
    missing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*places: Any, **_: int) -> None:
        raise OSError(1, "Operation not permitted")

    write(tmp_path / "linked.cutrace", [0, 4, 0])
    for name in missing:
        monkeypatch.setattr(os, name, refuse)
    write(tmp_path / "x.cutrace", [0, 4, 0])
    assert bases_of(tmp_path / "x.cutrace") == [0, 4, 0]
    for number in range(3):
        for path in (tmp_path / f"x.cutrace/{number}").iterdir():
            linked = tmp_path / f"linked.cutrace/{number}/{path.name}"
            assert path.read_bytes() == linked.read_bytes()


def test_a_launch_that_is_given_up_leaves_nothing_to_link_to(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        with suppress(RuntimeError), trace.launch(launch()) as rows:
            rows.instructions(CODE)
            raise RuntimeError
        trace.withdraw()
        with trace.launch(launch()) as rows:
            rows.instructions(CODE)
    assert not (tmp_path / "x.cutrace/0").is_symlink()
    assert read_trace(tmp_path / "x.cutrace").launches[0].count("instructions") == 1


def test_tables_too_large_to_be_held_are_written_as_they_come(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 40, 400_000).astype(np.uint64)  # 12 MB
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        for _ in range(2):
            with trace.launch(launch()) as rows:
                rows.instructions(CODE)
                rows.patterns([1], [[0] * 32])
                for part in np.split(values, 4):
                    rows.accesses(0, 0, np.arange(len(part)), 0, 0, 1, part, 0)
    read = read_trace(tmp_path / "x.cutrace")
    for one in read.launches:
        found = np.concatenate([batch["base"].to_numpy() for batch in one.access_batches()])
        assert (found == values).all()
    assert (tmp_path / "x.cutrace/1/patterns.arrow").stat().st_nlink == 2

"""A trace that is recorded anew while somebody has it open."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace import scan_traces
from cutrace.base.errors import CutraceError
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces import reader, trace_folder
from cutrace.traces.reader import Trace, read_trace

MEANWHILE = r"\.arrow: replaced meanwhile: it was another file when the trace was opened"


def record(path: Path, stride: int) -> Trace:
    return hand_trace(path, [Access(warp(stride=stride), step=step) for step in range(stride)])


def strides(trace: Trace) -> list[int]:
    """The bytes between the first two lanes of each access."""
    return [int(row[1] - row[0]) for row in trace.launches[0].accesses()["addresses"].to_pylist()]


def exchange_folder(path: Path) -> None:
    record(path, 2)


def copy_over(path: Path) -> None:
    other, path = Path(record(path.with_name(f"other-{path.name}"), 2).path), Path(path)
    if path.is_dir():
        shutil.copytree(other, path, dirs_exist_ok=True)
    else:
        shutil.copy(other, path)


def keep_time(path: Path) -> None:
    """Replace it by one of the same time of change."""
    path = Path(path)
    times = {file: file.stat().st_mtime_ns for file in (path, *path.rglob("*"))}
    record(path, 2)
    for file, time in times.items():
        os.utime(file, ns=(time, time))


@pytest.mark.parametrize("name", ["a.cutrace", "a.cutrace.zip"])
@pytest.mark.parametrize("replace", [exchange_folder, copy_over, keep_time])
def test_a_trace_that_was_open_says_so_and_a_new_look_sees_the_new_one(
    tmp_path: Path, name: str, replace: Callable[[Path], None]
) -> None:
    trace = record(tmp_path / name, 1)
    replace(trace.path)
    with pytest.raises(CutraceError, match=MEANWHILE):
        trace.launches[0].accesses()
    with pytest.raises(CutraceError, match=MEANWHILE):
        trace.launches[0].check_unchanged()
    assert strides(read_trace(trace.path)) == [2, 2]


@pytest.mark.parametrize("name", ["a.cutrace", "a.cutrace.zip"])
def test_tables_that_were_looked_at_before_say_so(tmp_path: Path, name: str) -> None:
    trace = record(tmp_path / name, 1)
    assert strides(trace) == [1]
    record(trace.path, 2)
    with pytest.raises(CutraceError, match=MEANWHILE):
        list(trace.launches[0].control_batches())
    with pytest.raises(CutraceError, match=MEANWHILE):
        trace.launches[0].count("texels")


def test_a_trace_that_was_removed_says_so(tmp_path: Path) -> None:
    trace = record(tmp_path / "a.cutrace", 1)
    shutil.rmtree(trace.path)
    with pytest.raises(CutraceError, match=r"patterns\.arrow: removed meanwhile"):
        trace.launches[0].patterns()


def test_a_trace_that_is_replaced_while_it_is_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "a.cutrace", 1)
    check, strides_to_come = reader._check_launches, [3, 2]

    def replace_first(trace: Path, count: int) -> object:
        if strides_to_come:
            stride = strides_to_come.pop()
            with monkeypatch.context() as patch:
                patch.setattr(reader, "_check_launches", check)
                record(trace, stride)
        return check(trace, count)

    monkeypatch.setattr(reader, "_check_launches", replace_first)
    assert strides(read_trace(tmp_path / "a.cutrace")) == [3, 3, 3]


def test_a_frame_of_several_traces_says_so(tmp_path: Path) -> None:
    trace = record(tmp_path / "a.cutrace", 1)
    frame = scan_traces([trace.path], "accesses")
    record(trace.path, 2)
    with pytest.raises(CutraceError, match=MEANWHILE):
        frame.select("step").collect()
    frame = scan_traces([trace.path], "accesses").filter(step=1)
    assert frame.select("step").collect()["step"].to_list() == [1]


def test_a_packed_copy_is_of_one_trace(tmp_path: Path) -> None:
    from cutrace.analyzer.exports.zip import write

    trace = record(tmp_path / "a.cutrace", 1)
    record(trace.path, 2)
    with pytest.raises(CutraceError, match=MEANWHILE):
        write(trace, tmp_path / "b.cutrace.zip", ReplayOptions())
    assert not (tmp_path / "b.cutrace.zip").exists()


def test_a_name_is_never_without_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path / "a.cutrace", 1).path
    if not trace_folder._swap(path, record(tmp_path / "b.cutrace", 3).path):
        pytest.skip("this file system cannot exchange two folders")
    rename, freed = os.rename, list[Path]()

    def note(old: Path, new: Path) -> None:
        rename(old, new)
        freed.extend([path] * (not path.exists()))

    monkeypatch.setattr(os, "rename", note)
    assert strides(record(path, 2)) == [2, 2]
    assert freed == []

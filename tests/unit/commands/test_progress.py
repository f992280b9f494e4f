"""What a verb tells of how far it is, on a terminal alone, and only where it takes a while."""

import io
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cutrace
from cutrace.base.progress import RunProgress, listening, running
from cutrace.commands.options.recording import Recording, launches_text, record_source
from cutrace.commands.terminal import progress
from cutrace.models.replay.device.device import load_devices
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.models.replay.replay import replay
from cutrace.models.replay.replay_cache import cached_frame
from cutrace.models.replay.stateful import ordered
from cutrace.models.replay.stateful.ordered import read_ahead
from cutrace.tracer.program.launches import Tally
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.simt import run
from cutrace.traces.reader import LaunchTrace

ADD = """
extern "C" __global__ void add(int *out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}"""
WAVE = 256
"""Blocks of 256 threads that run together."""


class Terminal(io.StringIO):
    """A terminal, or a file."""

    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def lines(self) -> list[str]:
        return [line for line in self.getvalue().replace("\x1b[K", "").split("\r") if line]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    """Put a terminal or a file in the place of stderr; `patience` are the seconds between lines."""

    def make(is_terminal: bool = True, patience: float = 0.001) -> Terminal:
        made = Terminal(is_terminal)
        monkeypatch.setattr("sys.stderr", made)
        monkeypatch.setattr(progress, "UPDATE_SECONDS", patience)
        return made

    return make


class Noted(RunProgress):
    """Keeps the part and the share at every moment that it is told of."""

    def __init__(self) -> None:
        self.parts: list[float] = []
        self.shares: list[float] = []
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "part":
            self.parts.append(value)
            self.shares.append(self.share if hasattr(self, "blocks") else 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the second that it is; 0 at first."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return lambda second: now.__setitem__(0, second)


def test_the_time_left_falls_while_nothing_is_told(clock: Callable[[float], None]) -> None:
    share = progress.ProgressReporter()
    clock(10)
    assert share.text() == ""
    share.update(0.5)
    assert share.text() == "50 %, 10 s left"
    clock(12)
    share.update(0.5)
    assert share.text() == "50 %, 8 s left"
    clock(15)
    share.update(0.75)
    assert share.text() == "75 %, 5 s left"
    clock(100)
    assert share.text() == "75 %, 1 s left"


def test_a_stage_is_foreseen_from_the_one_before_until_it_has_a_pace_of_its_own(
    clock: Callable[[float], None],
) -> None:
    share = progress.ProgressReporter((4, 1))
    clock(10)
    share.update(0.5)
    assert share.text() == "40 %, 15 s left"  # 10 s for 2 of 5
    clock(20)
    share.begin()
    assert share.text() == "80 %, 5 s left"
    clock(24)
    share.update(0.5)
    assert share.text() == "90 %, 4 s left"


def test_a_stage_that_was_done_before_leaves_the_time_of_the_next_alone(
    clock: Callable[[float], None],
) -> None:
    share = progress.ProgressReporter((4, 1))
    clock(0.1)
    share.begin()
    clock(4.1)
    share.update(0.5)
    assert share.text() == "90 %, 4 s left"


def test_passes_over_a_trace_are_heard_and_those_of_kept_results_are_not_waited_for(
    tmp_path: Path,
) -> None:
    with cutrace.Session(tmp_path / "add.cutrace") as gpu:
        out = gpu.device_array(1 << 18, "int32")
        gpu.compile(ADD).get_function("add")[1 << 10, 256](out)
    share = progress.ProgressReporter()
    trace = cutrace.read_trace(tmp_path / "add.cutrace")
    (launch,) = trace.launches
    share.expect(trace, 2)
    assert launch.count("accesses") == 1 << 14  # a load and a store of 2^13 warps
    with listening(share.update, share.count_rows):
        list(launch.access_batches())
        assert share.fraction == 0.5
        for _ in range(2):
            cached_frame(launch, Path(__file__), first_row, str(tmp_path))
        assert share.rows == 1 << 14  # the first time it is read: 2 of 2, then one need not be
        assert share.fraction == 1
        with ThreadPoolExecutor(1) as thread:  # which nobody listens to
            thread.submit(lambda: list(launch.access_batches())).result()
    list(launch.access_batches())
    assert share.read == 2 << 14


def test_rows_that_a_thread_reads_ahead_are_heard(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "add.cutrace") as gpu:
        out = gpu.device_array(1 << 18, "int32")
        gpu.compile(ADD).get_function("add")[1 << 10, 256](out)
    (launch,) = cutrace.read_trace(tmp_path / "add.cutrace").launches
    heard: list[int] = []
    with (
        listening(lambda share: None, heard.append),
        read_ahead(launch.access_batches(), ordered.WORTH) as batches,
    ):
        list(batches)
    assert sum(heard) == 1 << 14


def first_row(launch: LaunchTrace) -> pl.DataFrame:
    (batch, *_) = launch.access_batches()
    return pl.DataFrame({"block": batch["block"].to_numpy()[:1]})


def test_devices_with_codes_of_their_own_are_parts_of_one_share(tmp_path: Path) -> None:
    told: list[float] = []
    with cutrace.Session(tmp_path / "add.cutrace") as gpu:
        out = gpu.device_array(256, "int32")
        gpu.compile(ADD).get_function("add")[1, 256](out)
    launch = cutrace.read_trace(tmp_path / "add.cutrace").launches[0]
    with listening(told.append):
        replay(launch, load_devices(("h100", "gtx580"), {}), ReplayOptions())
    assert told == [0.5, 1]


def test_a_terminal_is_told_the_share_and_left_empty(screen: Callable[..., Terminal]) -> None:
    terminal = screen()
    with progress.progress("replaying") as share:
        share.update(0.5)
        time.sleep(0.1)
    assert "replaying: 0 s, 50 %, 1 s left" in terminal.lines()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("is_terminal", "patience"), [(False, 0.001), (True, 60)])
def test_a_file_and_who_waits_for_less_than_a_second_are_told_nothing(
    screen: Callable[..., Terminal], is_terminal: bool, patience: float
) -> None:
    terminal = screen(is_terminal, patience)
    with progress.progress("replaying") as share:
        share.update(0.5)
        time.sleep(0.02)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "parts"), [(0, [0, 0, 0.25, 0.5, 0.75, 1, 0]), (1e9, [0, 0, 0.25, 0.5, 1, 0])]
)
@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_the_engine_notes_each_wave_that_is_long_and_several_short_ones_at_once(
    engine: str, seconds: float, parts: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutrace.base.progress.RunProgress", Noted)
    monkeypatch.setattr(run, "TELL_SECONDS", seconds)
    with (
        running() as ran,
        default_options(RecordOptions(engine=engine, jobs=1)),
        cutrace.Session(tmp_path / "add.cutrace") as gpu,
    ):
        out = gpu.device_array(4 * WAVE * 256, "int32")
        gpu.compile(ADD).get_function("add")[4 * WAVE, 256](out)
    assert isinstance(ran, Noted)
    assert ran.parts == parts
    assert ran.launches == 1


def test_the_share_of_a_source_is_of_the_blocks_of_all_its_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Noted()
    monkeypatch.setattr("cutrace.base.progress.RunProgress", lambda: ran)
    monkeypatch.setattr(run, "TELL_SECONDS", 0)
    source = tmp_path / "add.cu"
    lines = (f"add<<<{waves * WAVE}, 256>>>(o:i32[{3 * WAVE * 256}])" for waves in (1, 3))
    source.write_text("".join(f"// cutrace: {line}\n" for line in lines) + ADD)
    record_source(source, tmp_path / "a.cutrace", Recording())
    assert sorted({*ran.shares}) == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert ran.shares == sorted(ran.shares)


def test_a_script_and_a_program_tell_launches() -> None:
    assert launches_text(RunProgress(launches=3, part=0.4)) == "3 launches, 40 % of the next"
    assert launches_text(RunProgress()) == ""
    assert launches_text(RunProgress(part=0.25)) == "25 % of the first launch"
    text = Tally(run=3, recorded=3, running="scale").text(0.4)
    assert re.fullmatch(r"3 launches \(.* a second\), 0.0 MB, 40 % of scale", text)


def test_a_line_fits_the_terminal_and_ends_in_the_share() -> None:
    line = progress.fitted("recording a/long/folder/product.cu", ": 3 s, 50 %, 3 s left", 40)
    assert line == "recording a/lon...: 3 s, 50 %, 3 s left"
    assert progress.fitted("recording", ": 3 s, 50 %", 8) == "...: 3 "


def test_a_sweep_tells_recordings_and_the_time_left(
    screen: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = screen()
    (tmp_path / "add.cu").write_text(ADD)
    (tmp_path / "suite.toml").write_text(
        '[sizes]\nN = [1, 2]\n[[variant]]\nname = "add"\nsource = "add.cu"\n'
        'launch = "add<<<{N}, 32>>>(o:i32[64])"\n'
    )
    cutrace.sweep(tmp_path / "suite.toml", tmp_path / "suite.csv", processes=1)
    told = [line.partition(", ")[2] for line in terminal.lines()]
    assert told[0].startswith(("0 of 2 recordings", "1 of 2 recordings"))
    assert any(re.fullmatch(r"1 of 2 recordings, 50 %, \d+ s left", line) for line in told)
    assert terminal.getvalue().endswith("\r\x1b[K")

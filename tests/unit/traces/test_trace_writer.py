import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hand_trace import Access, hand_trace, instruction, instruction_table, launch
from warps import FULL, warp

from cutrace.base.errors import CutraceError
from cutrace.traces import table_file
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import INSTRUCTIONS, Compiler, Event, Resources
from cutrace.traces.trace_folder import write_file
from cutrace.traces.writer import TraceWriter


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_trace_appears_under_its_name_only_when_whole(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    with TraceWriter(target) as trace:
        with trace.launch(launch()) as rows:
            rows.patterns([FULL], [[0] * 32])
        assert not target.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x.cutrace"]
    assert len(read_trace(target).launches) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with (
        pytest.raises(error),
        TraceWriter(tmp_path / "x.cutrace") as trace,
        trace.launch(launch()),
    ):
        raise error
    assert not list(tmp_path.iterdir())


def test_an_exception_leaves_the_old_trace_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    hand_trace(target, [Access(warp(stride=4))])
    before = files(target)
    with pytest.raises(RuntimeError), TraceWriter(target):
        raise RuntimeError
    assert files(tmp_path) == {f"x.cutrace/{name}": data for name, data in before.items()}


def test_a_writer_that_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path / "x.cutrace")
    trace.launch(launch())
    assert list(tmp_path.iterdir())
    del trace
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("later", [0, 1])
def test_a_launch_that_failed_keeps_the_trace_from_being_written(
    later: int, tmp_path: Path
) -> None:
    trace = TraceWriter(tmp_path / "x.cutrace")
    with pytest.raises(RuntimeError), trace.launch(launch()):
        raise RuntimeError
    for _ in range(later):
        with trace.launch(launch()) as rows:
            rows.instructions(instruction_table([instruction(0)]))
    with pytest.raises(CutraceError, match=r"launch 0 \(k\) did not finish"):
        trace.close()
    assert not list(tmp_path.iterdir())


def test_launches_are_written_one_after_the_other(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        with trace.launch(launch()), pytest.raises(CutraceError, match="launch 0 is still being"):
            trace.launch(launch())
        with trace.launch(launch()) as second:
            assert second.number == 1


def test_an_existing_trace_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    hand_trace(target, [Access(warp(stride=4))])
    trace = hand_trace(target, [Access(warp(stride=4)), Access(warp(stride=8), step=1)])
    assert trace.launches[0].count("accesses") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x.cutrace"]


def test_a_file_of_that_name_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    target.write_text("mine")
    with pytest.raises(CutraceError, match="a file has this name; only an existing trace"):
        TraceWriter(target)
    assert files(tmp_path) == {"x.cutrace": b"mine"}


def test_a_folder_that_is_not_a_trace_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    target.mkdir()
    with pytest.raises(CutraceError, match="a folder that is not a trace has this name"):
        TraceWriter(target)


@pytest.mark.parametrize("stray", ["notes.txt", "0/notes.txt"])
def test_a_trace_with_somebodys_notes_in_it_is_refused(tmp_path: Path, stray: str) -> None:
    target = tmp_path / "x.cutrace"
    hand_trace(target)
    (target / stray).write_text("mine")
    with pytest.raises(CutraceError, match=r"notes\.txt is no part of a trace"):
        TraceWriter(target)


def test_a_link_of_that_name_is_refused(tmp_path: Path) -> None:
    hand_trace(tmp_path / "x.cutrace")
    (tmp_path / "y.cutrace").symlink_to(tmp_path / "x.cutrace")
    with pytest.raises(CutraceError, match="a symbolic link has this name"):
        TraceWriter(tmp_path / "y.cutrace")


def test_what_appears_at_the_name_meanwhile_is_refused_too(tmp_path: Path) -> None:
    target = tmp_path / "x.cutrace"
    trace = TraceWriter(target)
    target.write_text("mine")
    with pytest.raises(CutraceError, match="a file has this name"):
        trace.close()
    assert files(tmp_path) == {"x.cutrace": b"mine"}


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"there is no folder .*nowhere; make it first"):
        TraceWriter(tmp_path / "nowhere" / "x.cutrace")


def test_two_traces_of_the_same_rows_are_byte_identical(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    first, second = tmp_path / "a.cutrace", tmp_path / "elsewhere" / "b.cutrace"
    for target, names in ((first, ["a.cu", "b.cu"]), (second, ["b.cu", "a.cu"])):
        with TraceWriter(target) as trace:
            trace.compiler(Compiler("nvrtc", "12.9", ("-DN=4",), "compute_75"))
            for name in names:
                trace.source(name, f"text of {name}")
            trace.event(Event("copy", 4096, "HtoD", "data"))
            with trace.launch(launch()) as rows:
                rows.patterns([FULL], [warp(stride=4).offsets])
                rows.accesses(*_columns(200_000))
    assert files(first) == files(second)


def _columns(rows: int) -> tuple[np.ndarray, ...]:
    index = np.arange(rows)
    dtypes = (np.uint64, np.uint16, np.uint32, np.uint8, np.uint32, np.uint8, np.uint64, np.uint32)
    values = (0, 0, index, 0, 0, 1, 0x1000_0000 + index, 0)
    return tuple(np.full(rows, v).astype(d) for v, d in zip(values, dtypes, strict=True))


_FULL_DISK = """
import resource, sys
import numpy as np
from cutrace.base.errors import CutraceError
from cutrace.traces.schema import Launch
from cutrace.traces.writer import TraceWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with TraceWriter(sys.argv[1]) as trace:
        with trace.launch(Launch("k", "k()", (1, 1, 1), (32, 1, 1), 0, 0, 0)) as rows:
            base = np.random.default_rng(1).integers(0, 2**40, 100_000)
            rows.accesses(0, 0, np.arange(100_000), 0, 0, 1, base, 0)
except CutraceError as error:
    print(error)
"""


def test_a_full_disk_is_one_clear_message_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    command = [sys.executable, "-c", _FULL_DISK, str(tmp_path / "x.cutrace")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = os.path.join(tmp_path, "x.cutrace/0/accesses.arrow: cannot write it: File too large")
    assert done.stdout == expected + "\n"
    assert done.stderr == ""
    assert not list(tmp_path.iterdir())


_INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs behind `&`
from cutrace.traces.writer import TraceWriter
trace = TraceWriter(sys.argv[1])
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, str(tmp_path / "x.cutrace")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert not list(tmp_path.iterdir())


def test_identifiers_count_on_from_call_to_call(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        assert rows.patterns([1, 3], np.zeros((2, 32), np.int32)) == 0
        assert rows.patterns([7], np.zeros((1, 32), np.int32)) == 2
        assert rows.paths([2, 1], [0, 0, 0], FULL, 0, 0, 1) == 0
        assert rows.paths([1], [0], [1], [0], [0], [5]) == 2
    active, _ = read_trace(tmp_path / "x.cutrace").launches[0].patterns()
    assert active.tolist() == [1, 3, 7]


def test_a_path_takes_its_length_of_the_flat_columns(tmp_path: Path) -> None:
    entries = ([0, 1, 0], [FULL, 1, 3], [1, 0, 0], [2, 0, 0], [1, 9, 4])
    code = [instruction(0), instruction(1, "ret", block=1)]
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.instructions(instruction_table(code))
        rows.paths([2, 1], *entries)
    paths = read_trace(tmp_path / "x.cutrace").launches[0].paths()
    assert paths["blocks"].to_pylist() == [[0, 1], [0]]
    assert paths["active"].to_pylist() == [[FULL, 1], [3]]
    assert paths["not_taken"].to_pylist() == [[1, 0], [0]]
    assert paths["targets"].to_pylist() == [[2, 0], [0]]
    assert paths["repeat"].to_pylist() == [[1, 9], [4]]


def test_histories_are_compressed_by_zstandard_and_accesses_by_lz4(tmp_path: Path) -> None:
    many = np.arange(1, 5001, dtype=np.uint32)
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.patterns(many, np.zeros((5000, 32), np.int32))
        rows.paths([5000], np.zeros(5000, np.int64), many, many, 1, 1)
    data = {n: (tmp_path / f"x.cutrace/0/{n}.arrow").read_bytes() for n in ("paths", "patterns")}
    zstandard, lz4 = b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"  # how their frames begin
    assert {name: (zstandard in text, lz4 in text) for name, text in data.items()} == {
        "paths": (True, False),
        "patterns": (False, True),
    }


def test_the_caller_may_reuse_its_arrays(tmp_path: Path) -> None:
    step = np.zeros(1, np.uint32)
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.instructions(instruction_table([instruction(0)]))
        rows.patterns([FULL], [[0] * 32])
        for number in range(3):
            step[0] = number
            rows.accesses(0, 0, step, 0, 0, 1, 0x1000_0000, 0)
    steps = [batch["step"].to_pylist() for batch in _accesses(tmp_path / "x.cutrace")]
    assert steps == [[0, 1, 2]]


def test_columns_that_are_given_away_make_the_same_bytes(tmp_path: Path) -> None:
    for name, owns_columns in (("a", False), ("b", True)):
        target = tmp_path / f"{name}.cutrace"
        with (
            TraceWriter(target, owns_columns=owns_columns) as trace,
            trace.launch(launch()) as rows,
        ):
            assert rows.patterns([FULL], [warp(stride=4).offsets]) == 0
            assert rows.patterns([FULL, 1], np.zeros((2, 32), np.int32)) == 1
            rows.accesses(*_columns(50_000))
            rows.paths([2, 1], [0, 1, 0], [FULL, 1, 3], 0, 0, 1)
    assert files(tmp_path / "a.cutrace") == files(tmp_path / "b.cutrace")


def test_what_is_wrong_with_columns_that_were_given_away_is_told_by_the_end(tmp_path: Path) -> None:
    with (
        pytest.raises(CutraceError, match="launch 0: patterns: column `active`: values"),
        TraceWriter(tmp_path / "x.cutrace", owns_columns=True) as trace,
        trace.launch(launch()) as rows,
    ):
        rows.patterns([-1], [[0] * 32])
    assert list(tmp_path.iterdir()) == []


def test_single_values_hold_for_all_rows(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.instructions(instruction_table([instruction(0)]))
        rows.patterns([FULL], [[0] * 32])
        rows.accesses(0, 0, [5, 6], 0, 0, 1, 0x1000_0000, 0)
    (batch,) = _accesses(tmp_path / "x.cutrace")
    assert batch["space"].to_pylist() == [1, 1]
    assert batch["base"].to_pylist() == [0x1000_0000, 0x1000_0000]


def test_a_large_call_is_cut_into_batches_of_64_mib(tmp_path: Path) -> None:
    # a row of lanes_on has 8 + 4 + 8 = 20 bytes; 4 194 304 rows are 80 MiB, cut in two halves
    rows_written = 4 << 20
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.instructions(instruction_table([instruction(0)]))
        rows.lanes_on(0, 0, np.zeros(rows_written, np.uint64))
    (found,) = read_trace(tmp_path / "x.cutrace").launches
    assert [batch.num_rows for batch in found.lanes_on_batches()] == [2 << 20, 2 << 20]


def test_a_row_larger_than_a_reader_takes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "BATCH_BYTES", 1000)
    monkeypatch.setattr(table_file, "PIECE_BYTES", 1000)
    entries = ([0] * 100, 1, 0, 0, 1)  # 4 + 4 + 4 + 1 + 4 = 17 bytes an entry, and 5 offsets
    with (
        pytest.raises(CutraceError, match=r"paths\.arrow: a row of \d+ bytes; split it"),
        TraceWriter(tmp_path / "x.cutrace") as trace,
        trace.launch(launch()) as rows,
    ):
        rows.paths([100], *entries)
    assert not list(tmp_path.iterdir())


def _accesses(path: Path) -> list[pa.RecordBatch]:
    return list(read_trace(path).launches[0].access_batches())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([-1], 0, 0, 0, 0, 1, 0, 0), r"column `block`: values -1 to -1 do not fit uint64"),
        ((0, [0x10000], 0, 0, 0, 1, 0, 0), r"column `warp`: values 65536 to 65536 do not fit"),
        ((0, 0, 0, 0, 0, 1, [0.5], 0), r"column `base`: float64 values, expected uint64"),
        (([0, 0], [0, 0, 0], 0, 0, 0, 1, 0, 0), r"column `block`: shape \(2,\), expected 3 values"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(
    tmp_path: Path, columns: tuple[object, ...], message: str
) -> None:
    with (
        pytest.raises(CutraceError, match="launch 0: accesses: " + message),
        TraceWriter(tmp_path / "x.cutrace") as trace,
        trace.launch(launch()) as rows,
    ):
        rows.accesses(*columns)  # type: ignore[arg-type]


def test_instructions_of_another_schema_are_refused(tmp_path: Path) -> None:
    table = instruction_table([instruction(0)]).rename_columns(
        ["PC", *INSTRUCTIONS.names[1:]],
    )
    with (
        pytest.raises(CutraceError, match="launch 0: instructions: no column `pc`"),
        TraceWriter(tmp_path / "x.cutrace") as trace,
        trace.launch(launch()) as rows,
    ):
        rows.instructions(table)


def test_a_launch_with_a_wrong_value_is_refused_where_it_is_made(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        with pytest.raises(CutraceError, match=r"launch of k: grid: 2 values, expected 3"):
            trace.launch(launch(grid=(1, 1)))
        with pytest.raises(CutraceError, match=r"launch of k: local_bytes: expected an integer"):
            trace.launch(launch(local_bytes="4"))


def test_two_texts_of_one_name_get_two_keys(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        assert trace.source("k.cu", "one") == "k.cu"
        assert trace.source("k.cu", "two") == "k.cu (2)"
        assert trace.source("k.cu", "one") == "k.cu"
    sources = read_trace(tmp_path / "x.cutrace").manifest.sources
    assert sources == {"k.cu": "one", "k.cu (2)": "two"}


def test_resources_may_come_after_the_launch(tmp_path: Path) -> None:
    resources = (Resources("sm_75", 32, 0, 0, 360),)
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        with trace.launch(launch()):
            pass
        trace.resources(0, resources)
        with pytest.raises(CutraceError, match="no launch 1; there are 1"):
            trace.resources(1, resources)
    assert read_trace(tmp_path / "x.cutrace").launches[0].launch.resources == resources


def test_events_are_kept_in_order_and_launches_append_theirs(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        trace.event(Event("copy", 128, "HtoD", "data"))
        with trace.launch(launch()):
            pass
        trace.event(Event("copy", 128, "DtoH", "data"))
    events = read_trace(tmp_path / "x.cutrace").manifest.events
    assert [(event.kind, event.launch) for event in events] == [
        ("copy", -1),
        ("launch", 0),
        ("copy", -1),
    ]


def test_a_file_is_whole_where_the_system_takes_some_bytes_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    write_file(str(tmp_path / "x"), bytes(range(100)))
    assert (tmp_path / "x").read_bytes() == bytes(range(100))

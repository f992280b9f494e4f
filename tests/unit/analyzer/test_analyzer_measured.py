"""Profilers' files as variants: read as the tools print them, matched, compared."""

import re
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from warps import warp

from cutrace.analyzer.comparison.measured_variant import Variant, compare_measured
from cutrace.analyzer.counting.vocabulary import heading, vocabularies
from cutrace.analyzer.profile import Profile, analyze
from cutrace.analyzer.profilers.measured import read_measured
from cutrace.analyzer.profilers.ncu_csv import render_details, render_raw
from cutrace.analyzer.profilers.nvprof_csv import render_metrics
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

Captured = pytest.CaptureFixture[str]
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
RAW = f"""==PROF== Connected to process 912 (/usr/bin/python3)
answer: 42
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","{SECTORS}","dram__bytes_read.sum","launch__func_cache_config"
"","","","","","","","","","","","sector","Kbyte",""
"0","912","python3","127.0.0.1","void k<(int)4>(float *, int)","1","7","(32, 1, 1)",\
"(1, 1, 1)","0","9.0","1,004","1.25","CachePreferNone"
"1","912","python3","127.0.0.1","void k<(int)4>(float *, int)","1","7","(32, 1, 1)",\
"(1, 1, 1)","0","9.0","32","n/a","CachePreferNone"
"""
DETAILS = f"""==PROF== Disconnected
"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","p","127.0.0.1","k(float *, int)","2020-May-29","1","7","Launch Statistics",\
"Registers Per Thread","register/thread","16"
"0","1","p","127.0.0.1","k(float *, int)","2020-May-29","1","7","Occupancy",\
"Theoretical Active Warps per SM","warp","64"
"0","1","p","127.0.0.1","k(float *, int)","2020-May-29","1","7",\
"Command line profiler metrics","{SECTORS}","sector","1.234.567"
"1","1","p","127.0.0.1","k(float *, int)","2020-May-29","1","7","Occupancy",\
"Theoretical Occupancy","%","81,25"
"""
NVPROF = """==20858== Profiling application: ./k
==20858== Event result:
"Device","Kernel","Invocations","Event Name","Min","Max","Avg"
"Tesla K20c (0)","k(float*, int)",2,"gld_request",1,1,1
==20858== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla K20c (0)","k(float*, int)",2,"gld_transactions","Global Load Transactions",1,32,16
"Tesla K20c (0)","k(float*, int)",2,"gld_efficiency","Global Load Efficiency",12.500000%,\
100.000000%,56.250000%
"Tesla K20c (0)","k(float*, int)",2,"dram_read_throughput","Device Read",1.0GB/s,2.0GB/s,1.5GB/s
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two launches of k, whose load touches 4 sectors and 32."""
    told = launch(
        kernel="_Z1kILi4EEvPfi",
        signature="k<4>(float *data, int n)",
        arguments=(Argument("data", "float *", "data"), Argument("n", "int", 4)),
    )
    path = tmp_path / "t.cutrace"
    with TraceWriter(path) as trace:
        for stride in (4, 128):
            with trace.launch(told) as rows:
                write_rows(rows, [Access(warp(stride=stride))], [instruction(0)])
    return path


def profiled(trace: Path, device: str) -> Profile:
    return analyze(trace, device)


def test_the_raw_page_is_read_with_separators_and_units(tmp_path: Path) -> None:
    found = read_measured(written(tmp_path / "a.csv", RAW))
    assert found.vocabulary == "ncu"
    first, second = found.launches
    assert first.values == {SECTORS: 1004, "dram__bytes_read.sum": 1250}
    assert second.values == {SECTORS: 32}
    assert (first.kernel, first.capability) == ("void k<(int)4>(float *, int)", "9.0")


def test_the_details_page_is_read_by_its_words_and_in_other_languages(tmp_path: Path) -> None:
    first, second = read_measured(written(tmp_path / "a.csv", DETAILS)).launches
    assert first.values == {
        "launch__registers_per_thread": 16,
        "sm__maximum_warps_avg_per_active_cycle": 64,
        SECTORS: 1234567,
    }
    assert second.values == {"sm__maximum_warps_per_active_cycle_pct": 81.25}


def test_nvprofs_events_and_metrics_are_one_launch_a_kernel(tmp_path: Path) -> None:
    (found,) = read_measured(written(tmp_path / "a.csv", NVPROF)).launches
    assert found.times == 2
    assert found.values["gld_request"] == 1
    assert (found.values["gld_transactions"], found.values["gld_efficiency"]) == (16, 56.25)


SHAPES = f"""==PROF== Creating report from application replay data: 0%....100%
"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC",\
"Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"
"109","app","127.0.0.1","void k<(int)4>(float *, int)","(32, 1, 1)","(1, 1, 1)","0","9.0","3",\
"Command line profiler metrics","{SECTORS}","sector","1,004","1,004","1,004.00"
"109","app","127.0.0.1","void k<(int)4>(float *, int)","(32, 1, 1)","(1, 1, 1)","0","9.0","3",\
"Occupancy","Theoretical Occupancy","%","50.00","50.00","50.00"
"109","app","127.0.0.1","void k<(int)4>(float *, int)","(32, 1, 1)","(4, 1, 1)","0","9.0","1",\
"Command line profiler metrics","{SECTORS}","sector","8","8","8.00"
"""


def test_a_summary_of_ncu_is_an_average_of_all_launches_of_a_kernel(
    trace: Path, tmp_path: Path
) -> None:
    file = read_measured(written(tmp_path / "a.csv", SHAPES))
    assert [(launch.times, launch.capability) for launch in file.launches] == [
        (3, "9.0"),
        (1, "9.0"),
    ]
    assert file.launches[0].values["sm__maximum_warps_per_active_cycle_pct"] == 50
    found = compare_measured({"ours": profiled(trace, "h200"), "chip": file})
    (row,) = (row for t in found.tables for row in t.rows if row.name == SECTORS)
    # ours touch 4 and 32 sectors; of the chip's four launches three had 1004 and one 8
    assert [cell.value for cell in row.cells] == [(4 + 32) / 2, (3 * 1004 + 8) / 4]
    assert "(average of 4)" in found.launches[0][1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_file_is_read_in_the_encodings_that_shells_write(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    path = tmp_path / "a.csv"
    path.write_bytes((mark + RAW).encode(encoding))
    first, _ = read_measured(path).launches
    assert first.values[SECTORS] == 1004


def test_a_table_that_was_written_again_without_quotes_is_read(tmp_path: Path) -> None:
    text = f""",ID,Process ID,Kernel Name,CC,{SECTORS},dram__bytes_read.sum
0,,,,,sector,Kbyte
1,0,912,"void k<(int)4>(float *, int)",9.0,1004.0,1.25
2,1,912,"void k<(int)4>(float *, int)",9.0,3.2e+01,
"""
    first, second = read_measured(written(tmp_path / "a.csv", text)).launches
    assert first.values == {SECTORS: 1004, "dram__bytes_read.sum": 1250}
    assert second.values == {SECTORS: 32}


def test_launches_are_matched_by_kernel_and_number(trace: Path, tmp_path: Path) -> None:
    variants: dict[str, Variant] = {
        "ours": profiled(trace, "h200"),
        "chip": read_measured(written(tmp_path / "a.csv", RAW)),
    }
    found = compare_measured(variants)
    rows = [row for t in found.tables for row in t.rows if row.name == SECTORS]
    cells = [row.cells for row in rows]
    assert [[c.value for c in row] for row in cells] == [[4, 1004], [32, 32]]
    assert [[c.difference for c in row] for row in cells] == [[0, 1000], [0, 0]]
    assert [row[1].ratio for row in cells] == [1004 / 4, 1]
    assert found.launches[1] == ("k<4><<<1, 32>>>(data, n=4)", "void k<(int)4>(float *, int)")
    # the other way round: against the chip
    turned = compare_measured(variants, baseline="chip").tables[0].rows[0]
    assert [c.difference for c in turned.cells] == [-1000, 0]


def test_an_average_is_said_to_be_one(trace: Path, tmp_path: Path) -> None:
    variants: dict[str, Variant] = {
        "ours": profiled(trace, "k20"),
        "chip": read_measured(written(tmp_path / "a.csv", NVPROF)),
    }
    found = compare_measured(variants)
    assert [t.launch for t in found.tables] == [0]
    (transactions,) = (r for r in found.tables[0].rows if r.name == "gld_transactions")
    # one line, and 32
    assert [c.value for c in transactions.cells] == [(1 + 32) / 2, 16]
    assert found.launches[0] == (
        "k<4><<<1, 32>>>(data, n=4) (average of 2)",
        "k(float*, int) (average of 2)",
    )


def test_another_capability_is_noted(trace: Path, tmp_path: Path) -> None:
    variants: dict[str, Variant] = {
        "ours": profiled(trace, "v100"),
        "chip": read_measured(written(tmp_path / "a.csv", RAW)),
    }
    assert compare_measured(variants).notes == (
        "chip was measured on compute capability 9.0, replayed as 7.0",
    )


@pytest.mark.parametrize("form", ["raw", "details", "metrics"])
def test_what_is_exported_is_read_back(form: str, trace: Path, tmp_path: Path) -> None:
    device, vocabulary, render = {
        "raw": ("h200", "ncu", render_raw),
        "details": ("h200", "ncu", render_details),
        "metrics": ("k20", "nvprof", render_metrics),
    }[form]
    profile = profiled(trace, device)
    found = read_measured(written(tmp_path / "a.csv", render(profile))).launches
    (own,) = (v for v in vocabularies() if v.name == vocabulary)
    first, second = (launch.counters for launch in profile.launches)
    for counter in own.of(profile.launches[0].capability):
        here = [first[heading(counter)], second[heading(counter)]]
        known = [value for value in here if value is not None]
        if not known:
            assert all(counter.name not in launch.values for launch in found)
        elif vocabulary == "ncu":
            told = [launch.values.get(counter.name) for launch in found]
            assert told == pytest.approx(here, abs=1e-6), counter.name
        else:
            mean = sum(known) / len(known)
            whole = int(mean) if all(isinstance(v, int) for v in known) else mean
            assert found[0].values[counter.name] == pytest.approx(whole, abs=1e-6), counter.name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nothing\n", "no table of a profiler"),
        (RAW[: RAW.index('"0","912"')], "a profiler's table without a launch in it"),
        (RAW.replace(" k<", " other<"), "no launch matches: the trace has k<4>; a has other<4>"),
        (RAW.replace(SECTORS, "my__own.sum").replace("dram__bytes", "mine__bytes"), "mine__bytes"),
    ],
)
def test_a_file_that_does_not_fit_is_answered(
    text: str, complaint: str, trace: Path, tmp_path: Path
) -> None:
    with pytest.raises(CutraceError, match=complaint):
        compare_measured(
            {
                "t": profiled(trace, "h200"),
                "a": read_measured(written(tmp_path / "a.csv", text)),
            }
        )


def test_the_verb_puts_a_file_beside_a_trace(trace: Path, tmp_path: Path, capsys: Captured) -> None:
    file = written(tmp_path / "chip.csv", RAW)
    assert run(["compare", str(trace), str(file), "-d", "h200"]) == 0
    said = capsys.readouterr().out
    (row, _) = (line.split() for line in said.splitlines() if line.startswith(SECTORS))
    assert row[1:] == ["4", "1,004", "+1,000", "251x", "more"]
    assert run(["compare", str(trace), str(file), "-d", "h200", "--counters", REQUESTS]) == 0
    assert REQUESTS in capsys.readouterr().out
    for words, complaint in (
        (["--by", "line"], "chip has launches only, so no --by line"),
        (["--baseline", "chop"], "no variant 'chop'; nearest: chip"),
    ):
        assert run(["compare", str(trace), str(file), "-d", "h200", *words]) == 2
        assert complaint in capsys.readouterr().err
    assert run(["compare", str(file), f"b={file}"]) == 2
    assert "give a trace to compare them with" in capsys.readouterr().err


PRINTED = """==PROF== Connected to process 1604 (/home/me/app)
==PROF== Profiling "mix": 0%....50%....100% - 10 passes
kernel,ns
[1665] app@127.0.0.1
  void mix<4>(int *, int) (1056, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Elapsed Cycles                cycle       37,610
    Duration                         us        25.15
    ----------------------- ----------- ------------

    INF   This workload is utilizing greater than 80.0% of the available compute performance
          Start by analyzing workloads in the Compute Workload Analysis section.

    Section: Launch Statistics
    -------------------------------- --------------- ---------------
    Metric Name                          Metric Unit    Metric Value
    -------------------------------- --------------- ---------------
    Grid Size                                                  1,056
    Driver Shared Memory Per Block       Kbyte/block            1.02
    -------------------------------- --------------- ---------------

  other() (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Launch Statistics
    -------------------------------- --------------- ---------------
    Metric Name                          Metric Unit    Metric Value
    -------------------------------- --------------- ---------------
    Grid Size                                                      1
    -------------------------------- --------------- ---------------
"""
"""As ncu 2025.3 printed of an H200, shortened."""
OLDER = """  copy(float*, float const*), 2020-Nov-13 12:01:02, Context 1, Stream 7
    Section: Launch Statistics
    ---------------------------------------------------------------------- --------------- ------
    Grid Size                                                                                  64
    Registers Per Thread                                                   register/thread     16
    ---------------------------------------------------------------------- --------------- ------
"""
RAW_PRINTED = """  copy(float *) (64, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
  --------------------------- --------------- ------------
  Metric Name                     Metric Unit Metric Value
  --------------------------- --------------- ------------
  gpu__time_duration.sum                   ms         1.25
  l1tex__t_bytes.sum                    Mbyte         4.19
  smsp__inst_executed.sum                inst    1,056,000
  smsp__inst_executed_absent.sum                     (!) n/a
  --------------------------- --------------- ------------
"""


def test_what_ncu_prints_for_people_is_read(tmp_path: Path) -> None:
    mix, other = read_measured(written(tmp_path / "out.txt", PRINTED)).launches
    assert (mix.kernel, mix.capability) == ("void mix<4>(int *, int)", "9.0")
    assert mix.values["launch__grid_size"] == 1056
    assert mix.values["launch__shared_mem_per_block_driver"] == 1020
    assert mix.values["Duration"] == 25150
    assert (other.kernel, other.values) == ("other()", {"launch__grid_size": 1})
    (old,) = read_measured(written(tmp_path / "old.txt", OLDER)).launches
    assert (old.kernel, old.values["launch__registers_per_thread"]) == (
        "copy(float*, float const*)",
        16,
    )
    (raw,) = read_measured(written(tmp_path / "raw.txt", RAW_PRINTED)).launches
    assert raw.values == {
        "gpu__time_duration.sum": 1_250_000,
        "l1tex__t_bytes.sum": pytest.approx(4_190_000),
        "smsp__inst_executed.sum": 1_056_000,
    }


@pytest.mark.parametrize("name", ["out.txt", "out", "profile.log"])
def test_what_ncu_prints_is_compared_with_a_trace(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = launch(kernel="copy", signature="copy(float *)", grid=(64, 1, 1), block=(128, 1, 1))
    trace = hand_trace(tmp_path / "copy.cutrace", launch=made)
    text = RAW_PRINTED.replace("smsp__inst_executed.sum", "launch__grid_size      ")
    file = written(tmp_path / name, text)
    assert (
        run(
            ["compare", str(trace.path), str(file), "-d", "a100", "--counters", "launch__grid_size"]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert re.search(r"launch__grid_size +64 +1,056,000", said), said

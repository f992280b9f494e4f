"""Files of nvprof and Nsight Compute, read back as their users' scripts read them."""

import csv
import re
from io import StringIO
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from warps import warp

from cutrace.analyzer.counting.vocabulary import vocabularies
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.profilers.measured import chosen_counters
from cutrace.analyzer.profilers.ncu_csv import render_details, render_raw
from cutrace.analyzer.profilers.nvprof_csv import render_gpu_trace, render_metrics
from cutrace.commands._main import run
from cutrace.traces.schema import Argument, Event, Resources
from cutrace.traces.writer import TraceWriter

NUMBER = re.compile(r"^-?\d+(\.\d{6})?(%|GB/s)?$")
ASKED = ("global_load_transactions", "sector_efficiency", "texture_requests")
KERNEL = 'reverse<"x">(int*, const int*, float)'
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two launches of a kernel, of 4 and of 32 sectors, between two copies and a set."""
    shape = launch(
        kernel="_Z7reversePiPKif",
        signature='reverse<"x">(int *out, const int *in, float k)',
        grid=(3, 2, 1),
        shared_static=512,
        shared_dynamic=256,
        arguments=(
            *(Argument("out", "int *", "out"), Argument("in", "const int *", "in")),
            Argument("k", "float", 1.5),
        ),
        resources=(Resources("sm_50", 12, 512, 0, 0),),
    )
    path = tmp_path / "k.cutrace"
    with TraceWriter(path) as trace:
        trace.event(Event("copy", 128, "HtoD", "in"))
        trace.event(Event("set", 64, "", "out"))
        for stride in (4, 128):
            with trace.launch(shape) as rows:
                write_rows(rows, [Access(warp(stride=stride))], [instruction(0)])
        trace.event(Event("copy", 256, "DtoH", "out"))
    return path


def table(text: str, first: str) -> tuple[list[str], list[list[str]]]:
    """The header and rows of a CSV that begins at the line with this field."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f'"{first}"'))
    head, *rows = csv.reader(lines[start:])
    assert all(len(row) == len(head) for row in rows)
    return head, rows


def test_the_summary_of_metrics_is_nvprofs(trace: Path) -> None:
    text = render_metrics(analyze(trace, ["k20", "t4"]), ASKED)
    assert text.splitlines()[:2] == [
        "==0== Metric result:",
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"',
    ]
    head, rows = table(text, "Device")
    records = [dict(zip(head, row, strict=True)) for row in rows]
    assert [(r["Device"], r["Metric Name"]) for r in records] == [
        (device, name) for device in ("Tesla K20 (0)", "Tesla T4 (1)") for name in ASKED
    ]
    # 4 and 32 sectors; 128 of 128 bytes and of 1024
    assert {(r["Kernel"], r["Invocations"]) for r in records} == {(KERNEL, "2")}
    assert [records[0][name] for name in ("Min", "Max", "Avg")] == ["4", "32", "18"]
    assert [records[1][name] for name in ("Min", "Max", "Avg")] == [
        "12.500000%",
        "100.000000%",
        "56.250000%",
    ]
    assert all(NUMBER.match(r[name]) for r in records for name in ("Min", "Max", "Avg"))
    # strings stand in quotes, numbers do not
    assert '",2,"global_load_transactions","' in text
    assert text.splitlines()[2].endswith('",4,32,18')


def test_the_trace_of_the_gpu_is_nvprofs(trace: Path) -> None:
    text = render_gpu_trace(analyze(trace, "k20"))
    first, head, units, *rows = text.splitlines()
    assert first == "======== Profiling result:"
    assert head.startswith('"Start","Duration","Grid X","Grid Y","Grid Z","Block X",')
    assert units == "us,us,,,,,,,,KB,KB,KB,GB/s,,,,,,,"
    names, _, *events = csv.reader([head, units, *rows])
    records = [dict(zip(names, row, strict=True)) for row in events]
    assert [r["Name"] for r in records] == [
        "[CUDA memcpy HtoD]",
        "[CUDA memset]",
        f"{KERNEL} [3]",
        f"{KERNEL} [4]",
        "[CUDA memcpy DtoH]",
    ]
    assert [r["Size"] for r in records] == ["0.125000", "0.062500", "", "", "0.250000"]
    assert [r["SrcMemType"] for r in records][0::4] == ["Pageable", "Device"]
    kernel = records[2]
    assert [kernel[f"Grid {axis}"] for axis in "XYZ"] == ["3", "2", "1"]
    assert [kernel[f"Block {axis}"] for axis in "XYZ"] == ["32", "1", "1"]
    shared = [kernel[name] for name in ("Static SMem", "Dynamic SMem")]
    assert (kernel["Registers Per Thread"], shared) == ("12", ["0.500000", "0.250000"])
    assert {r["Start"] + r["Duration"] + r["Throughput"] for r in records} == {""}


def test_the_raw_page_is_ncus(trace: Path) -> None:
    text = render_raw(analyze(trace, ["h200"]), ASKED)
    assert re.fullmatch(r'(("[^"]*(""[^"]*)*")(,|\n))+', text)
    head, (units, *rows) = table(text, "ID")
    assert head[:11] == [
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC"),
    ]
    assert units == [*[""] * 11, "transaction", "%", "request"]
    assert [row[4] for row in rows] == [KERNEL, KERNEL]
    assert [row[7:11] for row in rows] == [["(32, 1, 1)", "(3, 2, 1)", "0", "9.0"]] * 2
    assert [row[11:] for row in rows] == [["4", "100.000000", "0"], ["32", "12.500000", "0"]]


def test_the_details_page_has_a_row_a_metric_and_leaves_out_what_is_absent(trace: Path) -> None:
    text = render_details(analyze(trace, ["8800gtx", "h200"]), (*ASKED, "gld_coherent"))
    head, rows = table(text, "ID")
    records = [dict(zip(head, row, strict=True)) for row in rows]
    found = [(r["ID"], r["CC"], r["Metric Name"]) for r in records]
    # 8800gtx has gld_coherent too; an array without textures asks for none, and says 0
    assert [f for f in found if f[2] == "gld_coherent"] == [
        ("0", "1.0", "gld_coherent"),
        ("2", "1.0", "gld_coherent"),
    ]
    assert len(found) == 2 * (3 + 1) + 2 * 3
    assert {r["Section Name"] for r in records} == {"Command line profiler metrics"}
    assert {r["Metric Unit"] for r in records if r["Metric Name"] == "sector_efficiency"} == {"%"}


def test_without_names_the_profilers_own_counters_are_exported() -> None:
    names = {v.name for v in vocabularies()}
    for profiler, capability in (("nvprof", (3, 5)), ("ncu", (9, 0))):
        found = {c.vocabulary for c in chosen_counters(profiler, capability, ())}
        assert found == {profiler if profiler in names else "cutrace"}
        assert {c.vocabulary for c in chosen_counters(profiler, (1, 0), ())} == {"cutrace"}


def test_the_verb_writes_each_format(trace: Path, tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "counters.txt"
    config.write_text("# what is asked for\nglobal_load_transactions\n")
    for name in ("nvprof-metrics", "nvprof-gpu-trace", "ncu-raw", "ncu-details"):
        out = tmp_path / f"{name}.csv"
        assert run(["export", str(trace), "--to", name, "-o", str(out)]) == 0
        assert out.read_text().endswith("\n")
    assert run(["export", str(trace), "--to", "ncu-raw", "--config", str(config)]) == 0
    text = capsys.readouterr().out
    head = next(csv.reader(StringIO(text[text.index('"ID"') :])))
    assert head[11:] == ["global_load_transactions"]
    assert run(["export", str(trace), "--to", "ncu"]) == 2
    assert "cannot export to 'ncu'; nearest: ncu-raw" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "device", "reason"),
    [
        *((to, "h100", "the default") for to in ("ncu-raw", "ncu-details", "folded", "requests")),
        ("nvprof-metrics", "k20", "as old as the format"),
        ("cuda-profile", "8800gtx", "as old as the format"),
    ],
)
def test_the_device_of_an_export_is_the_one_of_every_verb_and_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    to: str,
    device: str,
    reason: str,
) -> None:
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    monkeypatch.chdir(tmp_path)
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4))]).path.name
    words = ["export", trace, "--to", to]
    texts = []
    for name in (None, device):
        out = f"{name}.csv"
        assert run([*words, "-o", out, *(("-d", name) if name else ())]) == 0
        said = capsys.readouterr().err
        assert said.startswith(f"device: {device} ({reason}; -d chooses") == (name is None)
        texts.append((tmp_path / out).read_bytes())
    assert texts[0] == texts[1]

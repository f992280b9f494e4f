"""One value on every surface: terminal, CSV, JSON, HTML, Python, and the Parquet of a sweep."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from html_page import Page

import cutrace
from cutrace.analyzer.counting.vocabulary import find_counters, heading, vocabularies
from cutrace.analyzer.text.number import number
from cutrace.commands._main import run

DEVICES = ("h100", "gtx580")
TRANSPOSE = "transpose<<<(2, 2), (32, 8)>>>(out:f32[64,64], in:f32[64,64]=arange, 64)"
SUM = "sum<<<8, 128>>>(out:f32[8], in:f32[1024]=arange)"
COUNT = "count<<<4, 64>>>(bins:i32[16], in:i32[256]=arange)"
SOURCES = {
    "transpose": (
        TRANSPOSE,
        """__global__ void transpose(float *out, const float *in, int n)
{
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    for (int j = 0; j < 32; j += 8)
        out[(blockIdx.x * 32 + threadIdx.y + j) * n + blockIdx.y * 32 + threadIdx.x] =
            tile[threadIdx.x][threadIdx.y + j];
}
""",
    ),
    "sum": (
        SUM,
        """__global__ void sum(float *out, const float *in)
{
    __shared__ float part[128];
    part[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (int s = 1; s < 128; s *= 2) {
        if (threadIdx.x % (2 * s) == 0)
            part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}
""",
    ),
    "count": (
        COUNT,
        """__global__ void count(int *bins, const int *in)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    atomicAdd(&bins[in[i] % 16], 1);
}
""",
    ),
}
Values = Mapping[tuple[str, str], float | None]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sources, and a suite that has them as variants."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    variants = []
    for name, (launch, text) in SOURCES.items():
        (tmp_path / f"{name}.cu").write_text(f"// cutrace: {launch}\n{text}")
        variants.append(f'[[variant]]\nname = "{name}"\nsource = "{name}.cu"\nlaunch = "{launch}"')
    names = json.dumps([counter.name for counter in vocabularies()[0].counters])
    head = f"devices = {json.dumps(DEVICES)}\ncounters = {names}\n"
    (tmp_path / "suite.toml").write_text("\n".join((head, *variants)))
    return tmp_path


def test_every_surface_has_the_same_six_hundred_values(folder: Path, capsys: Captured) -> None:
    assert run(["sweep", "suite.toml", "-o", "table.parquet"]) == 0
    table = pl.read_parquet("table.parquet")
    total = 0
    for name in SOURCES:
        assert run(["record", f"{name}.cu"]) == 0
        capsys.readouterr()
        trace = f"{name}.cutrace"
        python, page = _python(trace), _page(trace, capsys)
        rows = table.filter(pl.col("variant") == name).rows(named=True)
        parquet = {(row["device"], row["counter"]): row["value"] for row in rows}
        for device in DEVICES:
            by_csv = _csv(_shown(capsys, trace, device, "csv"))
            total += len(by_csv)
            assert _json(_shown(capsys, trace, device, "json")) == by_csv
            terminal = _terminal(_shown(capsys, trace, device, "table"))
            for (vocabulary, counter, unit), value in by_csv.items():
                found = find_counters([f"{vocabulary}.{counter}"])[0]
                key = device, heading(found)
                assert python[key] == pytest.approx(value, rel=1e-12), key
                assert page.get(key, value) == pytest.approx(value, rel=1e-12), key
                if vocabulary == "cutrace":
                    assert parquet[key] == pytest.approx(value, rel=1e-12), key
                assert found.unit == unit
                if value:
                    assert number(value, found) in terminal[vocabulary, counter]
            on_page = [key for key in page if key[0] == device]
            assert len(on_page) >= 50
    assert total >= 600


def _shown(capsys: Captured, trace: str, device: str, format: str) -> str:
    assert run(["analyze", trace, "-d", device, "--all", "-q", "--format", format]) == 0
    return capsys.readouterr().out


def _csv(text: str) -> dict[tuple[str, str, str], float]:
    rows = csv.DictReader(io.StringIO(text))
    return {
        (row["vocabulary"], row["counter"], row["unit"]): _number(row["value"])
        for row in rows
        if row["value"]
    }


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _json(text: str) -> dict[tuple[str, str, str], float]:
    (launch,) = json.loads(text)["launches"]
    return {
        (row["vocabulary"], row["counter"], row["unit"]): value
        for row in launch["counters"]
        for value in row["values"].values()
        if value is not None
    }


def _python(trace: str) -> Values:
    rows = cutrace.analyze(trace, DEVICES).frame().rows(named=True)
    return {(row["device"], row["counter"]): row["value"] for row in rows}


def _page(trace: str, capsys: Captured) -> Values:
    """The data attributes of the tables of counters in the report."""
    assert run(["report", trace, "-d", ",".join(DEVICES), "-o", "page.html"]) == 0
    capsys.readouterr()
    values: dict[tuple[str, str], float | None] = {}
    (panel,) = Page(Path("page.html").read_text()).root.find("section", data_panel="counters")
    for table in panel.find("table"):
        devices = [head.text for head in table.find("th", scope="col")][1:]
        for row in table.find("tr")[1:]:
            name = row.find("th", scope="row")[0].text
            for device, cell in zip(devices, row.find("td"), strict=True):
                for data in cell.find("data"):
                    values[device, name] = _number(data.attributes["value"])
    return values


def _terminal(text: str) -> dict[tuple[str, str], str]:
    lines: dict[tuple[str, str], str] = {}
    vocabulary = ""
    for line in text.splitlines():
        if line.startswith("["):
            vocabulary = line.strip("[]")
        elif vocabulary and line:
            name, _, rest = line.partition(" ")
            lines[vocabulary, name] = rest
    return lines

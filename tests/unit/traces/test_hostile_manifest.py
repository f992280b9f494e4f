"""Manifests made to take time or memory: little of either is spent before they are refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace, instruction
from warps import warp

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.replay import replay
from cutrace.traces.manifest import excess
from cutrace.traces.reader import read_trace

SIZE = 10_000_000 - 1
SECONDS = 2
MEGABYTES = 300

MEASURED = """
import sys, time
from cutrace.commands._main import run
status = run(sys.argv[1:])
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(status, int(peak) // 1024, time.process_time(), file=sys.stderr)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small trace of three launches."""
    return hand_trace(tmp_path / "x.cutrace", [Access(warp())], instructions=[instruction(0)]).path


def rewrite(trace: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON value of the manifest."""
    file = trace / "manifest.json"
    value = json.loads(file.read_bytes())
    change(value)
    file.write_text(json.dumps(value))


def fill(trace: Path, holder: str, item: str) -> None:
    """Give a list so many items that the manifest has 10 MB; a `.` leads into the first launch."""
    file = trace / "manifest.json"
    value = json.loads(file.read_bytes())
    place = value["launches"][0] if holder.startswith(".") else value
    place[holder.removeprefix(".")] = "HERE"
    before, after = json.dumps(value).split('"HERE"')
    count = (SIZE - len(before) - len(after)) // (len(item) + 1)
    file.write_text(f"{before}[{','.join([item] * count)}]{after}")


LAUNCH = (
    '{"kernel":"","signature":"","grid":[1,1,1],"block":[1,1,1],"shared_static":0,'
    '"shared_dynamic":0,"local_bytes":0}'
)
FLOODS = {
    "launches": ("launches", LAUNCH),
    "objects that hold little": ("launches", '{"":0}'),
    "empty lists": ("launches", "[]"),
    "numbers": ("launches", "999"),
    "events": ("events", '{"kind":"copy","bytes":4,"direction":"HtoD"}'),
    "arrays": (".arrays", '{"name":"a","space":"global","offset":0,"bytes":0}'),
    "arguments": (".arguments", '{"name":"a","type":"int","value":0}'),
    "accesses outside": (".outside", '{"pc":0,"lanes":1,"block":0,"thread":0,"address":0}'),
}


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory as Linux tells it")
@pytest.mark.parametrize("name", FLOODS)
def test_ten_megabytes_take_two_seconds_and_300_mb_at_most(trace: Path, name: str) -> None:
    fill(trace, *FLOODS[name])
    command = [sys.executable, "-c", MEASURED, "info", str(trace), "--verify"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    status, peak, seconds = ended.stderr.splitlines()[-1].split()
    assert int(status) in (0, 1, 2)
    assert len(ended.stdout + ended.stderr) < 100_000
    assert int(peak) < MEGABYTES
    assert float(seconds) < SECONDS + 1, "of the processor, with Python's own start"


def test_launches_without_folders_are_not_made(trace: Path) -> None:
    fill(trace, "launches", '{"wrong": 1, "as": "all of them are"}')
    with pytest.raises(CutraceError, match=r"1/instructions\.arrow: missing"):
        read_trace(trace)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 20_000, "20000 lists in 20000 bytes"),
        (b'{"a":' * 20_000, "20000 objects in 100000 bytes"),
        (b'{"a": "' + b"[{:" * 20_000 + b'"}', ""),
        (b'{"a": "\\"' + b"[{:" * 20_000 + b'\\\\"}', ""),
        (b'{"a": "\\\\"' + b"[" * 20_000, "20000 lists"),
        (b'{"a": "' + b"x" * (1 << 20) + b'", "b": ' + b"[" * 200_000, "200000 lists"),
    ],
)
def test_brackets_count_unless_they_are_part_of_a_text(text: bytes, said: str) -> None:
    assert excess(text)[: len(said) or None] == said


def test_a_source_full_of_brackets_is_no_excess(trace: Path) -> None:
    table = "{{1,2},{3,4}}," * 100_000
    rewrite(trace, lambda value: value["sources"].update({"table.cu": table}))
    assert read_trace(trace).manifest.sources["table.cu"] == table


HUGE = [2**31 - 1, 65535, 65535]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"grid": HUGE}, "blocks of 32 threads: too many to count them"),
        ({"grid": [2**31, 1, 1]}, "no device takes more blocks than"),
        ({"grid": [2**200, 1, 1]}, r"launches\[0\]\.grid\[0\]: 16069.* has more than 64 bits"),
        ({"block": [2**40, 1, 1]}, "nor blocks of more than 1024 threads"),
        ({"block": [0, 1, 1]}, "every size is at least 1"),
        ({"block": [-64, 1, 1]}, "every size is at least 1"),
        ({"shared_dynamic": 2**63}, "shared_dynamic is 9223372036854775808"),
        ({"local_bytes": 2**100}, r"local_bytes: 12676.* has more than 64 bits"),
        ({"arguments": [{"name": "", "type": "", "value": 0}] * 40000}, "40000 arguments; no ker"),
        ({"signature": "k" * 10**6}, "'kkk.*' has 1000000 characters; 131072 at most"),
    ],
)
def test_sizes_that_no_launch_has_are_refused_at_once(
    trace: Path, fields: dict[str, object], said: str
) -> None:
    rewrite(trace, lambda value: value["launches"][0].update(fields))
    with pytest.raises(CutraceError, match=said) as refused:
        read_trace(trace)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("grid", [[2**31 - 1, 1, 1], [1 << 20, 64, 1]])
def test_a_grid_without_rows_is_not_given_places(trace: Path, grid: list[int]) -> None:
    rewrite(trace, lambda value: value["launches"][0].update(grid=grid))
    with pytest.raises(CutraceError, match=r"broken trace: its grid has \d+ blocks of 1 warps"):
        replay(read_trace(trace).launches[0], [load_device("h100")])


def test_findings_that_are_alike_are_not_all_listed(trace: Path) -> None:
    rewrite(trace, lambda value: value["events"].extend([{"kind": "free"}] * 5000))
    command = [sys.executable, "-m", "cutrace", "info", str(trace), "--verify"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) < 110
    assert "manifest: and 4900 more" in ended.stderr
    shutil.rmtree(trace)

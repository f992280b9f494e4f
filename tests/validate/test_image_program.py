"""A program that samples textures: requests, sectors and results are those of an H100 and an H200.

`counters/fresh2_images.cu` was built by nvcc 13.0 and profiled there as it is; `h200_images.json`
has the kernel, the requests and the sectors of texture fetches of each launch, `PRINTED` the hashes
that it printed on both chips.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cutrace

COUNTERS = Path(__file__).parent / "counters"
COUNTED: list[list[object]] = json.loads((COUNTERS / "h200_images.json").read_text())
METRICS = [f"l1tex__t_{what}_pipe_tex_mem_texture.sum" for what in ("requests", "sectors")]
PRINTED = (
    *("2e08b6cb6cdf9e4f", "d11fdee972a99452", "090f4480c809f085", "f2cd707b7e8f78d0"),
    *("5d2ca17f692be740", "76d72db7979acd8b", "853f54527154dc9a", "290a6293e6516c8d"),
    *("192938ad399fc343", "eeb2a887940c56a0", "946e04a344d3ce61", "976344d1d84dd804"),
    *("74fe53cf007491fe", "a16f9b80d909009c", "2fb032d90f414d17", "6778c9edbe22b190"),
    *("0fe4e08d7482474f", "cab7fb16795dfa4f"),
)


@pytest.mark.slow
def test_textures_of_a_program_are_sampled_and_counted_as_on_the_chip(tmp_path: Path) -> None:
    path, source = tmp_path / "images.cutrace", COUNTERS / "fresh2_images.cu"
    command = [sys.executable, "-m", "cutrace", "record", str(source), "-o", str(path)]
    done = subprocess.run(
        [*command, "--device", "h200", "--"], capture_output=True, text=True, check=True
    )
    words = [line.split()[-1] for line in done.stdout.splitlines()]
    hashes = [word for word in words if len(word) == 16 and set(word) <= set("0123456789abcdef")]
    assert hashes == [*PRINTED]
    profile = cutrace.analyze(cutrace.read_trace(path), "h200", caches=False)
    found = [[int(ours.counters[m] or 0) for m in METRICS] for ours in profile.launches]
    assert found == [counts for _, *counts in COUNTED]
    assert len(found) == 19

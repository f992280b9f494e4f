"""A trace is replayed once, whatever is asked of it first and whatever next."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cutrace
from cutrace.commands._main import run
from cutrace.models.replay import replay, replay_cache
from cutrace.models.replay.replay import replay as count

PRODUCT = """\
// cutrace: naive<<<(4, 4), (16, 16)>>>(a:f32[64,64]=random:1, b:f32[64,64]=random:2, \
c:f32[64,64], 64)
__global__ void naive(const float *a, const float *b, float *c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
"""
TRACE = "naive.cutrace"
VERBS: dict[str, Callable[[], object]] = {
    "analyze": lambda: run(["analyze", TRACE]),
    "analyze --by line": lambda: run(["analyze", TRACE, "--by", "line"]),
    "analyze --advice": lambda: run(["analyze", TRACE, "--advice"]),
    "report": lambda: run(["report", TRACE, "-o", "report.html"]),
    "compare": lambda: run(["compare", f"a={TRACE}", f"b={TRACE}"]),
    "why": lambda: run(["why", TRACE]),
    "why of a line": lambda: run(["why", TRACE, "naive.cu:9"]),
    "check": lambda: run(["check", TRACE, "--budget", "budget.toml"]),
    "export": lambda: run(["export", TRACE, "--to", "ncu-raw", "-d", "h100", "-o", "ncu.csv"]),
    "cutrace.analyze": lambda: cutrace.analyze(TRACE, device="h100"),
}
NEEDS_NONE = {"why", "why of a line"}
"""What asks models about some rows alone."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace of 16,000 accesses, and a budget for it."""
    folder = tmp_path_factory.mktemp("product")
    source = folder / "naive.cu"
    source.write_text(PRODUCT)
    cutrace.record(source, out=folder / TRACE)
    (folder / "budget.toml").write_text(
        'devices = ["h100"]\n[[budget]]\nkernel = "naive"\ndivergent_branches = 0\n'
    )
    return folder


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The device of each replay."""
    noted: list[str] = []

    def note(trace: Any, devices: Any, options: Any) -> Any:
        noted.extend(device.key for device in devices)
        return count(trace, devices, options)

    monkeypatch.setattr(replay, "replay", note)
    return noted


@pytest.mark.parametrize("first", VERBS)
def test_the_second_question_replays_nothing(
    first: str,
    recorded: Path,
    replays: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(recorded)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    caches = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    VERBS[first]()
    assert replays == [] if first in NEEDS_NONE else ["h100"]
    shutil.copytree(caches / "cutrace" / replay_cache.KIND, tmp_path / "kept")
    for second, ask in VERBS.items():
        shutil.rmtree(caches / "cutrace" / replay_cache.KIND)
        shutil.copytree(tmp_path / "kept", caches / "cutrace" / replay_cache.KIND)
        replays.clear()
        ask()
        expected = ["h100"] if first in NEEDS_NONE and second not in NEEDS_NONE else []
        assert replays == expected, f"{first}, then {second}"

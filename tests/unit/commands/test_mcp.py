"""`cutrace mcp`, by a scripted client on its standard streams."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.commands.mcp import MOST_BYTES, Caller

pytestmark = pytest.mark.skipif(not find_spec("mcp"), reason="mcp is not installed")
KERNEL = """__global__ void scale(float* out, const float* in, int n) {
  int row = blockIdx.%s * blockDim.%s + threadIdx.%s;
  int column = blockIdx.%s * blockDim.%s + threadIdx.%s;
  out[row * n + column] = 2 * in[row * n + column];
}
// cutrace: scale<<<(16, 64), (32, 8)>>>(out:f32[512,512], in:f32[512,512]=random:1, 512)
"""
SLOW, FAST = KERNEL % (*"xxxyyy",), KERNEL % (*"yyyxxx",)
LARGE = 10_000_000
ENDLESS = FAST.replace("  out[", "  for (unsigned long long i = 1; i; ++i) out[")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "served"
    folder.mkdir()
    (folder / "slow.cu").write_text(SLOW)
    (folder / "fast.cu").write_text(FAST)
    (folder / "endless.cu").write_text(ENDLESS)
    (folder / "bad.cu").write_text(FAST.replace("row * n", "wrong"))
    (folder / "large.cu").write_text(FAST.ljust(LARGE))
    (folder / "script.py").write_text("open('../written', 'w')")
    (folder / "reads.cu").write_text(f'#include "{folder.parent}/secret.h"\n{FAST}')
    (folder / "loads.cu").write_text(FAST.replace("random:1", "../values.npy"))
    (folder.parent / "secret.h").write_text("#define SECRET 1\n")
    (folder.parent / "outside.cu").write_text(FAST)
    (folder / "link.cu").symlink_to(folder.parent / "outside.cu")
    np.save(folder / "zeros.npy", np.zeros((512, 512), np.float32))
    np.save(folder.parent / "values.npy", np.zeros((512, 512), np.float32))
    return folder


def talk(folder: Path, script: Callable[[Any], Awaitable[Any]], *options: str) -> Any:
    """Run a script of calls with a client of a new server."""
    import mcp  # half a second: in the process that runs these tests alone

    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "cutrace", "mcp", str(folder), *options],
        env={**os.environ, "HOME": str(folder.parent / "home")},
        cwd=str(folder.parent),
    )

    async def main() -> Any:
        async with mcp.Client(server) as client:
            return await script(client)

    return asyncio.run(asyncio.wait_for(main(), 300))


@pytest.fixture(scope="module")
def answers(folder: Path) -> Any:
    """The answers of one server to all calls of this module, by a name."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "faster": ("judge", {"before": "slow.cu", "after": "fast.cu"}),
        "again": ("judge", {"before": "slow.cu", "after": "./fast.cu"}),
        "broken": ("judge", {"before": "slow.cu", "after": "bad.cu"}),
        "expected": (
            "judge",
            {"before": "slow.cu", "after": "fast.cu", "expect": {"out": "zeros.npy"}},
        ),
        "analyze": ("analyze", {"source": "slow.cu", "counters": ["global_transactions"]}),
        "why": ("why", {"source": "slow.cu", "line": "slow.cu:4"}),
        "counters": ("counters", {"name": "global_transactions"}),
        "devices": ("devices", {"name": "h100"}),
        "outside": ("judge", {"before": "slow.cu", "after": "../outside.cu"}),
        "absolute": ("analyze", {"source": str(folder.parent / "outside.cu")}),
        "link": ("analyze", {"source": "link.cu"}),
        "include": ("analyze", {"source": "reads.cu"}),
        "array": ("analyze", {"source": "loads.cu"}),
        "array of a launch": (
            "analyze",
            {
                "source": "fast.cu",
                "launch": ["scale<<<1, 1>>>(o:f32[4], i:f32[4]=../values.npy, 1)"],
            },
        ),
        "expectation": (
            "judge",
            {"before": "slow.cu", "after": "fast.cu", "expect": {"out": "../values.npy"}},
        ),
        "missing": ("analyze", {"source": "no_such.cu"}),
        "no device": ("analyze", {"source": "fast.cu", "device": "h1000"}),
        "device file": ("analyze", {"source": "fast.cu", "device": "../d.toml"}),
        "large": ("analyze", {"source": "large.cu"}),
        "script": ("analyze", {"source": "script.py"}),
        "misspelt": ("analyze", {"source": "fast.cu", "devices": "a100"}),
        "option": ("why", {"source": "fast.cu", "line": "--figure=../x.svg"}),
        "no counter": ("counters", {"name": "global_transaktions"}),
        "no build": ("analyze", {"source": "bad.cu"}),
    }

    async def script(client: Any) -> dict[str, Any]:
        tools = await client.list_tools()
        results = {name: await client.call_tool(*call) for name, call in calls.items()}
        return {"tools": tools.tools, **results}

    return talk(folder, script)


def test_the_server_has_five_tools_with_descriptions(answers: dict[str, Any]) -> None:
    tools = {tool.name: tool for tool in answers["tools"]}
    assert set(tools) == {"judge", "analyze", "why", "counters", "devices"}
    assert all(tool.description for tool in tools.values())
    assert set(tools["judge"].input_schema["required"]) == {"before", "after"}


@pytest.mark.parametrize(
    ("call", "format"),
    [
        ("faster", "judge"),
        ("analyze", "profile"),
        ("why", "why"),
        ("counters", "counters"),
        ("devices", "devices"),
    ],
)
def test_a_tool_answers_with_the_json_of_its_verb(
    call: str, format: str, answers: dict[str, Any]
) -> None:
    assert not answers[call].is_error, answers[call]
    assert answers[call].structured_content["format"] == f"cutrace-{format}-1"
    assert json.loads(answers[call].content[0].text) == answers[call].structured_content


def test_judge_gives_a_verdict(answers: dict[str, Any]) -> None:
    faster = answers["faster"].structured_content
    assert (faster["verdict"], faster["same_output"]) == ("faster", True)
    assert answers["again"].structured_content == faster
    broken = answers["broken"].structured_content
    assert (broken["verdict"], broken["cause"]) == ("broken", "build")
    assert answers["expected"].structured_content["cause"] == "output"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("outside", "../outside.cu: it lies outside of the server's folder"),
        ("absolute", "outside.cu: it lies outside of the server's folder"),
        ("link", "link.cu: it lies outside of the server's folder"),
        ("include", "secret.h lies outside of the server's folder"),
        ("array", "values.npy lies outside of the server's folder"),
        ("array of a launch", "../values.npy: it lies outside of the server's folder"),
        ("expectation", "../values.npy: it lies outside of the server's folder"),
        ("missing", "no_such.cu: there is no such file"),
        ("no device", "nearest: h100"),
        ("device file", "'../d.toml' is no device"),
        ("large", f"large.cu has {LARGE:,} bytes; a source has {MOST_BYTES:,} at most"),
        ("script", "script.py: expected a .cu or .ptx source, or a trace"),
        ("misspelt", "devices\n  Extra inputs are not permitted"),
        ("option", "'--figure=../x.svg' is no line"),
        ("no counter", "nearest: global_transactions"),
        ("no build", "bad.cu does not compile"),
    ],
)
def test_a_wrong_call_is_a_tool_error_with_the_reason(
    call: str, reason: str, answers: dict[str, Any]
) -> None:
    assert answers[call].is_error
    assert reason in answers[call].content[0].text


def test_nothing_is_written_outside_of_the_folder(folder: Path, answers: dict[str, Any]) -> None:
    names = {path.name for path in folder.parent.iterdir()}
    assert names == {"served", "secret.h", "outside.cu", "values.npy"}
    assert (folder / ".cutrace" / "cache").is_dir()
    assert not list((folder / ".cutrace" / "tmp").iterdir())


def test_a_call_that_takes_too_long_is_ended(folder: Path) -> None:
    caller = Caller(folder, 2.0, 1 << 34)
    with pytest.raises(CutraceError, match="analyze took longer than 2 s, the limit"):
        caller.run(["analyze", *caller.sources(("endless.cu",), (), "h100")])


def test_judge_ends_a_candidate_before_the_call_ends(folder: Path) -> None:
    async def script(client: Any) -> Any:
        words = {"before": "fast.cu", "after": "endless.cu", "seconds": 3}
        return await client.call_tool("judge", words)

    answer = talk(folder, script, "--seconds", "200").structured_content
    assert (answer["verdict"], answer["cause"]) == ("broken", "endless")


def test_a_call_that_needs_too_much_memory_is_ended(folder: Path) -> None:
    caller = Caller(folder, 60.0, 1 << 27)
    with pytest.raises(CutraceError):
        caller.run(["analyze", *caller.sources(("fast.cu",), (), "h100")])

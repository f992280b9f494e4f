"""The extension of VS Code draws what the verbs print as JSON. Needs Node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hand_trace import Access, instruction, launch, write_rows
from warps import warp

from cutrace.commands._main import run
from cutrace.traces.writer import TraceWriter

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "scripts" / "vscode"
NODE = shutil.which("node")
DRAWN = """
const draw = require(process.argv[1] + "/draw");
const [profile, advice] = process.argv.slice(2).map((text) => JSON.parse(text));
console.log(JSON.stringify([draw.costs(profile, "/a/k.cu"), draw.problems(advice, "/a/k.cu")]));
"""

pytestmark = pytest.mark.skipif(
    not NODE or not EXTENSION.exists(), reason="no node here, or no extension beside the tests"
)


def test_it_draws_the_json_of_both_verbs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source("k.cu", "int i;\nfloat v = in[32 * i];\n")
        with made.launch(launch()) as rows:
            write_rows(rows, [Access(warp(stride=128))], [instruction(0, line=2)])
    told = []
    asked = "const {COUNTERS} = require(process.argv[1] + '/draw'); console.log(COUNTERS.join())"
    counters = node(asked).strip()
    for words in (["analyze", "--by", "line", "--counters", counters], ["advise"]):
        verb, *rest = words
        assert run([verb, str(tmp_path / "k.cutrace"), *rest, "--format", "json"]) == 0
        told.append(capsys.readouterr().out)
    (line,), (problem,) = json.loads(node(DRAWN, *told))
    assert line["line"] == problem["line"] == 2
    # 32 sectors where 4 hold as many words
    assert line["text"] == "100 % of the bytes moved; 32 transactions, 4 needed"
    assert problem["rule"] == "uncoalesced"


def test_its_own_tests_pass() -> None:
    done = subprocess.run(
        [str(NODE), "--test", "test/"], cwd=EXTENSION, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def node(script: str, *words: str) -> str:
    command = [str(NODE), "-e", script, str(EXTENSION), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

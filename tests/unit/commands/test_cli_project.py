"""`cutrace check` of a project: all that its cutrace.toml says, and nothing worse than before."""

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.analyzer.budget.project import read_project
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run

Captured = pytest.CaptureFixture[str]
PROJECT = """\
devices = ["h200"]
counters = ["global_transactions", "shared_conflicts"]
tolerance = 5

[[check]]
source = "near.cutrace"
races = true
[[check.limit]]
kernel = "k"
global_load_transactions = 4

[[check]]
source = "far.cutrace"
memory = true
budget = "far.toml"
"""
FAR = '[[budget]]\nkernel = "k"\nglobal_load_transactions = 32\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two traces of one load: of 4 sectors, and of 32; a project that holds both."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    trace("near", 4)
    trace("far", 128)
    Path("cutrace.toml").write_text(PROJECT)
    Path("far.toml").write_text(FAR)
    return tmp_path


def trace(name: str, stride: int) -> None:
    """A trace of one load whose lanes lie so many bytes apart."""
    shutil.rmtree(f"{name}.cutrace", ignore_errors=True)
    hand_trace(Path(f"{name}.cutrace"), [Access(warp(stride=stride))])


def test_all_checks_of_a_project_hold_in_one_process(capsys: Captured) -> None:
    assert run(["check"]) == 0
    said = capsys.readouterr().out
    assert said.rstrip().endswith("2 checks, 2 limits: all hold")
    assert "races not checked: the trace does not say what its warps ran" in said
    assert "no lane accessed memory outside of every array" in said
    assert run(["check", "cutrace.toml", "-q"]) == 0


def test_what_one_check_breaks_is_told_with_all_others(capsys: Captured) -> None:
    Path("far.toml").write_text(FAR.replace("32", "31"))
    Path("cutrace.toml").write_text(PROJECT.replace("transactions = 4", "transactions = 3"))
    assert run(["check"]) == 1
    said = capsys.readouterr().err
    assert "cutrace.toml: 1 of 1 limits broken" in said
    assert "far.toml: 1 of 1 limits broken" in said
    assert run(["check", "--format", "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("4", "2")  # races, memory


def test_a_baseline_is_what_it_cost_and_five_per_cent(capsys: Captured) -> None:
    assert run(["check", "--write-baseline", "before.json"]) == 0
    assert run(["check", "--against", "before.json"]) == 0
    capsys.readouterr()
    # a load of 4 sectors becomes one of 8 where 4 + 5 % are allowed: 4
    trace("near", 8)
    Path("cutrace.toml").write_text(PROJECT.replace("transactions = 4", "transactions = 8"))
    assert run(["check", "--against", "before.json"]) == 1
    said = capsys.readouterr().err
    assert "near.cutrace, as of before.json: 1 of 1 limits broken" in said
    assert "global_transactions of k on h200: 8, budget: not more than 4" in said
    assert run(["check", "--against", "before.json", "--format", "json"]) == 1
    limits = json.loads(capsys.readouterr().out)["limits"]
    assert [limit["limit"] for limit in limits if not limit["holds"]] == [4]


def test_a_baseline_of_before_has_the_names_of_before(capsys: Captured) -> None:
    project = PROJECT.replace('"global_transactions"', '"global_bytes_moved"')
    Path("cutrace.toml").write_text(project.replace("transactions = 4", "transactions = 8"))
    assert run(["check", "--write-baseline", "before.json"]) == 0
    text = Path("before.json").read_text()
    assert '"global_bytes_transferred": 128' in text
    Path("before.json").write_text(text.replace("bytes_transferred", "bytes_moved"))
    trace("near", 8)  # twice the sectors; 128 and 5 % are 134.4
    capsys.readouterr()
    assert run(["check", "--against", "before.json"]) == 1
    assert "global_bytes_transferred of k on h200: 256, budget: not more than 134" in (
        capsys.readouterr().err
    )


def test_a_tolerance_allows_that_much_more() -> None:
    trace("near", 32)  # 32 sectors: a lane each
    text = PROJECT.replace("transactions = 4", "transactions = 40")
    Path("cutrace.toml").write_text(text)
    assert run(["check", "--write-baseline", "before.json"]) == 0
    found = json.loads(Path("before.json").read_text())
    costs = found["checks"]["near.cutrace"]["h200"]["k"]
    assert costs["global_transactions"] == 32
    costs["global_transactions"] = 31  # 31 and 5 % are 32.55: 32 hold
    Path("before.json").write_text(json.dumps(found))
    assert run(["check", "--against", "before.json"]) == 0
    costs["global_transactions"] = 30  # 31.5: 32 do not
    Path("before.json").write_text(json.dumps(found))
    assert run(["check", "--against", "before.json"]) == 1


def test_a_baseline_is_a_ref_of_git_too(folder: Path, capsys: Captured) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        subprocess.run([*git, *words], check=True)
    assert run(["check", "--against", "HEAD"]) == 0
    trace("near", 8)
    Path("cutrace.toml").write_text(PROJECT.replace("transactions = 4", "transactions = 8"))
    assert run(["check", "--against", "HEAD"]) == 1
    assert "near.cutrace, as of HEAD: 1 of 1 limits broken" in capsys.readouterr().err
    assert run(["check", "--against", "nowhere"]) == 2
    assert "baseline nowhere: no such file, and git says: " in capsys.readouterr().err


def test_a_trend_shows_what_changed_over_the_last_commits(folder: Path, capsys: Captured) -> None:
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for stride in (128, 8, 4):
        trace("near", stride)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", f"stride {stride}"], check=True)
    trace("near", 16)
    assert run(["check", "--trend", "2"]) == 0
    heading, commits, *rows = capsys.readouterr().out.strip().splitlines()
    assert heading == "near.cutrace, k on h200"
    assert len(commits.split()) == 3
    # strides of two, one and four words: 8, 4 and 16 sectors; far.cutrace is the same throughout
    assert [row.split() for row in rows] == [["global_transactions", "8", "4", "16"]]
    assert run(["check", "--trend", "1", "--format", "json"]) == 0
    before, now = json.loads(capsys.readouterr().out)["commits"]
    assert before["checks"]["near.cutrace"]["h200"]["k"]["global_transactions"] == 4
    assert now["commit"] == "now"
    assert run(["check", "near.cutrace", "--races", "--trend", "2"]) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[check]] in it"),
        ("check = 1", "must be a list of tables"),
        ("devics = []\n[[check]]", "unknown key `devics`"),
        ("[[check]]\nraces = true", "the key `source` is missing"),
        ('[[check]]\nsource = "k.cu"', "nothing to check"),
        ('[[check]]\nsource = "k.cu"\nrace = true', "unknown key `race`"),
        ('[[check]]\nsource = "k.cu"\nlimit = [1]', r"`limit` must be tables"),
        ('tolerance = -1\n[[check]]\nsource = "k.cu"\nraces = true', "expected 0 per cent or more"),
        ('counters = ["x"]\n[[check]]\nsource = "k.cu"\nraces = true', "no counter 'x'"),
    ],
)
def test_a_project_that_is_wrong_is_refused_with_the_place(text: str, said: str) -> None:
    Path("cutrace.toml").write_text(text)
    with pytest.raises(CutraceError) as problem:
        read_project(Path("cutrace.toml"))
    assert said in str(problem.value)


def test_without_a_project_there_is_nothing_to_check(capsys: Captured) -> None:
    Path("cutrace.toml").unlink()
    assert run(["check"]) == 2
    assert "write cutrace.toml, which lists them" in capsys.readouterr().err
    assert run(["check", "near.cutrace", "--races", "--against", "HEAD"]) == 2


def test_a_file_that_is_no_baseline_is_refused(capsys: Captured) -> None:
    Path("before.json").write_text('{"cutrace-baseline": 1, "checks": {"near.cutrace": 7}}')
    assert run(["check", "--against", "before.json"]) == 2
    assert "no baseline of `cutrace check --write-baseline`" in capsys.readouterr().err


BAD = "__global__ void k(float *x) { x[0] = nowhere; }\n// cutrace: k<<<1, 32>>>(x:f32[32])\n"
WITH_BAD = '[[check]]\nsource = "bad.cu"\nraces = true\n\n[[check]]\nsource = "near'


def test_a_source_that_does_not_compile_hides_no_other_check(capsys: Captured) -> None:
    Path("bad.cu").write_text(BAD)
    Path("cutrace.toml").write_text(PROJECT.replace('[[check]]\nsource = "near', WITH_BAD))
    assert run(["check"]) == 2
    said = capsys.readouterr()
    assert "bad.cu does not compile" in said.err
    assert "near.cutrace:" in said.out
    assert "far.cutrace:" in said.out
    assert run(["check", "--format", "junit"]) == 2
    suite = ElementTree.fromstring(capsys.readouterr().out)
    # races and a limit of the one, memory and a limit of the other, and the one that cannot run
    assert [suite.get(n) for n in ("tests", "failures", "errors")] == ["5", "0", "1"]
    assert run(["check", "--format", "json"]) == 2
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(c["check"], c["holds"]) for c in checks] == [
        *(("error", False), ("races", True), ("memory", True)),
    ]
    assert run(["check", "--format", "markdown"]) == 2
    head, *_ = capsys.readouterr().out.splitlines()
    assert head == "**0 of 2 limits broken, 0 of 2 other checks failed, 1 check could not run**"


def test_a_broken_limit_beside_an_error_is_a_failure(capsys: Captured) -> None:
    Path("bad.cu").write_text(BAD)
    Path("far.toml").write_text(FAR.replace("32", "31"))
    Path("cutrace.toml").write_text(PROJECT.replace('[[check]]\nsource = "near', WITH_BAD))
    assert run(["check"]) == 1
    said = capsys.readouterr().err
    assert "bad.cu does not compile" in said
    assert "far.toml: 1 of 1 limits broken" in said


def test_a_budget_with_an_unknown_counter_hides_no_race_check(capsys: Captured) -> None:
    Path("far.toml").write_text(FAR.replace("global_load_transactions", "loads"))
    assert run(["check", "--format", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    kinds = [(check["check"], check["source"]) for check in document["checks"]]
    assert kinds == [
        *(("races", "near.cutrace"), ("memory", "far.cutrace"), ("error", "far.cutrace")),
    ]
    assert [limit["holds"] for limit in document["limits"]] == [True]


def test_a_source_that_did_not_compile_before_hides_no_other_check(capsys: Captured) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    Path("bad.cu").write_text(BAD)
    Path("cutrace.toml").write_text(PROJECT.replace('[[check]]\nsource = "near', WITH_BAD))
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        subprocess.run([*git, *words], check=True)
    Path("bad.cu").write_text(BAD.replace("nowhere", "1"))
    assert run(["check", "--against", "HEAD"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("cutrace: bad.cu, as of HEAD: bad.cu does not compile")
    assert "no shared-memory races between warps" in said.out
    assert "near.cutrace:" in said.out

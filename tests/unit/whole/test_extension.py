"""What other packages bring by entry points: found by name, and named if they err."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.analyzer.advice.advise import rule_names
from cutrace.analyzer.counting.vocabulary import OWN, vocabularies
from cutrace.analyzer.evidence.evidence import Evidence, Finding
from cutrace.analyzer.profile import Profile
from cutrace.base import plugins
from cutrace.commands._main import run
from cutrace.models.replay.device.device import load_devices
from cutrace.traces.reader import Trace

COUNTERS = """\
[[counter]]
name = "loads_and_stores"
doc = "Requests of both kinds."
unit = "requests"
devices = "1.0-"
formula = "SUM(global_load_requests) + SUM(global_store_requests)"
source = "Definition"
"""


def bring(monkeypatch: pytest.MonkeyPatch, group: str, name: str, brought: object) -> None:
    """Let an installed package have one entry point."""
    entry = type("Entry", (), {"name": name, "load": lambda self: brought})()
    known = group

    def entry_points(group: str) -> list[Any]:
        return [entry] if group == known else []

    monkeypatch.setattr(plugins, "entry_points", entry_points)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=4))])


def test_a_rule_of_another_package_advises(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(evidence: Evidence) -> Iterator[Finding]:
        yield Finding("few loads", f"{evidence.total('global_load_requests')} load", "load more")

    bring(monkeypatch, plugins.RULES, "few", find)
    assert rule_names()[-1] == "few"
    found = {f.rule: f.evidence for _, f in cutrace.advise(trace, device="h100").findings}
    assert found["few"] == "1 load"


def test_a_rule_that_raises_is_named(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, plugins.RULES, "few", lambda evidence: 1 / 0)
    with pytest.raises(cutrace.CutraceError, match="rule few: raises ZeroDivisionError: division"):
        cutrace.advise(trace, device="h100")


def test_a_report_of_another_package_is_a_format(
    trace: Trace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def names(profile: Profile) -> str:
        return " ".join(profile.devices) + "\n"

    bring(monkeypatch, plugins.REPORTS, "names", names)
    asked = ["analyze", str(trace.path), "-d", "h100,c870", "--format"]
    assert run([*asked, "names"]) == 0
    assert capsys.readouterr().out == "h100 c870\n"
    assert run([*asked, "name"]) == 2
    assert "nearest: names" in capsys.readouterr().err


def test_a_device_of_another_package_has_a_name(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text('name = "Tiny"\nbase = "h100"\n[chip]\nsms = 2\n')
    bring(monkeypatch, plugins.DEVICES, "tiny", file)
    assert [device.chip.sms for device in load_devices(["tiny"])] == [2]
    assert "tiny" in {device.key for device in load_devices(["all"])}
    assert cutrace.analyze(trace, device="Tiny").devices == ("tiny",)


@pytest.mark.parametrize("by_name", [True, False], ids=["$CUTRACE_COUNTERS", "entry point"])
def test_counters_of_ones_own_stand_among_the_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(COUNTERS)
    if by_name:
        monkeypatch.setenv(OWN, str(file))
    else:
        bring(monkeypatch, plugins.COUNTERS, "own", file)
    fresh: Any = vocabularies.__wrapped__
    assert fresh()[0].counters[-1].name == "loads_and_stores"
    file.write_text(COUNTERS.replace("loads_and_stores", "instructions"))
    with pytest.raises(cutrace.CutraceError, match="counter 'instructions' is defined twice"):
        fresh()
    file.unlink()
    with pytest.raises(cutrace.CutraceError, match=r"cannot read counters .*own.toml"):
        fresh()


@pytest.mark.slow
def test_a_devices_file_names_its_counters_for_one_command(
    tmp_path: Path, trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.toml").write_text(COUNTERS)
    file = tmp_path / "tiny.toml"
    file.write_text('name = "Tiny"\nbase = "h100"\ncounters = "own.toml"\n')
    asked = ["analyze", str(trace.path), "--counters", "loads_and_stores", "-d"]
    assert run([*asked, str(file)]) == 0
    assert "loads_and_stores     1" in capsys.readouterr().out
    (tmp_path / "budget.toml").write_text('[[budget]]\nkernel = "k"\nloads_and_stores = 0\n')
    budget = ["check", str(trace.path), "--budget", str(tmp_path / "budget.toml")]
    assert run([*budget, "-d", str(file)]) == 1
    assert "loads_and_stores" in capsys.readouterr().err
    (tmp_path / "k.cu").write_text("__global__ void k(int *a) { a[threadIdx.x] = 1; }")
    (tmp_path / "s.toml").write_text(
        f"devices = ['{file}']\ncounters = ['loads_and_stores']\n"
        "[[variant]]\nname = 'one'\nsource = 'k.cu'\nlaunch = 'k<<<1, 64>>>(a:i32[64])'\n"
    )
    assert run(["sweep", str(tmp_path / "s.toml"), "-o", str(tmp_path / "s.parquet")]) == 0
    assert "loads_and_stores" in capsys.readouterr().out
    swept = cutrace.sweep(tmp_path / "s.toml", tmp_path / "s.parquet", processes=1)
    assert swept.filter(counter="loads_and_stores")["value"].to_list() == [2.0]
    assert run([*asked, "h100"]) == 2  # no other command knows it
    assert "no counter 'loads_and_stores'" in capsys.readouterr().err
    (tmp_path / "own.toml").unlink()
    assert run([*asked, str(file)]) == 2
    assert "cannot read counters" in capsys.readouterr().err
    assert vocabularies()[0].counters[-1].name != "loads_and_stores"

"""The conformance test: our own models pass it, and each way to break the contract is told."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from cutrace.commands._main import run
from cutrace.models.replay.device.conformance import check_model
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.wiring import wire
from cutrace.models.replay.interface.model import Batch

HEAD = """
import time
import numpy as np
from cutrace.models.replay.interface.model import Batch, Step

class Mine:
    counters = ("seen",)
    period = 0
    past = 0
    def step(self, batch):
        n = len(batch)
"""
GOOD = "        return Step({'seen': np.ones(n, int)})\n"
FAULTS = {
    "size": (
        "        return Step({'seen': np.full(n, n)})\n",
        r"in batches of 1, `seen` of row 0 is 1, else 512: global \w+, \d+ lanes of \d+ bytes",
    ),
    "leak": (
        "        Mine.past += n; return Step({'seen': np.arange(n) + Mine.past - n})\n",
        r"in batches of 1, `seen` of row 0 is \d+, else 0: global",
    ),
    "shared": (
        "        Mine.past ^= n // 128; return Step({'seen': np.full(n, 1 - Mine.past % 2)})\n",
        r"beside another instance, `seen` of row \d+ is ",
    ),
    "order": (
        "        return Step({'seen': np.arange(n)})\n    period = 32\n",
        r"in another order, `seen` of row \d+ is 0, else \d+: global",
    ),
    "period": (
        "        return Step({'seen': batch.addresses[:, 0] // 64 % 2})\n    period = 64\n",
        "at a base address modulo its period, 64, `seen` of row",
    ),
    "kinds": (
        "        return Step({'seen': batch.kind})\n",
        r"with kinds in another order, `seen` of row 0 is \d+, else \d+",
    ),
    "writes": (
        "        batch.addresses[:] = 0\n" + GOOD,
        "raises ValueError: assignment destination is read-only, in row 0 of a batch of 512",
    ),
    "slow": (
        "        time.sleep(2e-4 * n + (0.01 if 7 in batch.row else 0))\n" + GOOD,
        r"slow: \d+ us a row, more than 100; row 7 alone takes \d+ us: global",
    ),
    "units": (
        "        self.past += n; new = np.zeros(n, int)\n"
        "        new[:1] = self.past == n; return Step({'seen': new})\n"
        "    serves_units = True\n",
        r"beside units, `seen` of row 0 is 0, else 1: global",
    ),
    "sums": (
        "        return Step({'seen': np.ones(n if batch.group is None else batch.groups, int)})\n"
        "    adds_up = True\n",
        r"`seen` of groups is \[1 1 1\]; its rows add up to \[171. 171. 170.\]",
    ),
    "out": (
        "        return Step({'seen': np.ones(n, int)}, batch.take(slice(0, None, 2)))\n",
        "in batches of 1, it passes on 512 rows, else 256",
    ),
    "NaN": (
        "        return Step({'seen': np.where(batch.row == 3, np.nan, 1.0)})\n",
        r"`seen` is nan of float64; expected integers, in row 3 of a batch of 512",
    ),
    "empty": (
        "        return Step({'seen': np.ones(max(n, 1), int)})\n",
        r"`seen` has the shape \(1,\); expected \(0,\), in a batch without rows",
    ),
    "names": (
        GOOD + "    counters = ('seen', 'seen')\n",
        r"counters = \('seen', 'seen'\); expected names",
    ),
}
"""What a model does, and what is said of it."""


@pytest.mark.parametrize("stage", ["coalescer", "banks", "constant", "l1", "lrc", "dram"])
def test_models_of_cutrace_keep_the_contract(stage: str) -> None:
    device = load_device("h100")
    (found,) = (w for w in wire(device.stages, device.file) if w.stage.name == stage)
    assert check_model(found.build, stage, found.spaces, 1 if found.after else 32) == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_what_breaks_the_contract_is_named_with_the_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    body, said = FAULTS[fault]
    file = tmp_path / "mine.py"
    file.write_text(HEAD + body)
    assert run(["check", "--model", str(file)]) == 1
    error = capsys.readouterr().err
    assert pytest.raises(AssertionError, match=said).matches(AssertionError(error)), error


def test_a_model_that_keeps_the_contract_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + GOOD)
    assert run(["check", "--model", str(file)]) == 0
    assert "mine.py:Mine keeps the contract: 512 rows" in capsys.readouterr().out
    file.write_text(HEAD + GOOD + "class Other(Mine):\n    pass\n")
    assert run(["check", "--model", str(file)]) == 2
    assert "2 classes have a `step`: Mine, Other; expected one" in capsys.readouterr().err
    file.write_text(HEAD + GOOD + "    def __init__(self, room):\n        pass\n")
    assert run(["check", "--model", str(file)]) == 2
    assert "it has keys without a default, room: name a device's" in capsys.readouterr().err


@pytest.mark.slow
def test_the_template_runs_and_its_own_tests_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "model", "tlb"]) == 0
    assert capsys.readouterr().out.endswith("next: cutrace check --model tlb/tlb.toml\n")
    assert run(["check", "--model", "tlb/tlb.toml"]) == 0
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tlb"]
    assert "3 passed" in subprocess.run(own, capture_output=True, text=True, check=True).stdout
    assert run(["new", "model", "tlb"]) == 2
    assert "tlb is there already" in capsys.readouterr().err
    assert run(["new", "model", "banks"]) == 2
    assert run(["new", "modle", "x"]) == 2
    assert "no template 'modle'; nearest: model" in capsys.readouterr().err


def test_the_contract_tells_of_every_field_of_a_batch() -> None:
    text = (Path(__file__).parents[4] / "docs" / "own-models.md").read_text()
    told = re.findall(
        r"^\| `(\w+)` \|", text.partition("| `Batch` |")[2].partition("\n\n")[0], re.M
    )
    assert told == [field.name for field in fields(Batch)]

"""Models of a user's own: where they are found, and what is said of one that errs."""

import inspect
import re
from pathlib import Path
from typing import Any

import own_models
import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.analyzer.profile import analyze
from cutrace.base import plugins
from cutrace.base.errors import CutraceError
from cutrace.models.replay.device import guarded
from cutrace.traces.reader import Trace

FILE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from cutrace.models.replay.interface.model import Batch, Step

@dataclass
class Mine:
    unit: int = 1
    counters: ClassVar = ("seen",)
    period: ClassVar = 0

    def step(self, batch: Batch) -> Step:
        n = len(batch)
        {body}
"""
GOOD = 'return Step({"seen": np.full(n, self.unit)})'
PASS_ON = 'return Step({"seen": np.ones(n, int)},'
ROWS = "(batch.kind, batch.addresses, batch.active, batch.row)"
FAULTS = {
    "1 / int((batch.addresses[:, 0] != 0x10000400).all()); " + GOOD: (
        "raises ZeroDivisionError: division by zero, in row 2 of a batch of 4: global load, "
        "32 lanes of 4 bytes from 0x10000400 on"
    ),
    'return {"seen": np.ones(n)}': "answers dict; expected a Step, in row 0",
    'return Step({"other": np.ones(n, int)})': "answers without its counter `seen`",
    'return Step({"seen": np.ones(n + 1, int)})': r"`seen` has the shape \(5,\); expected \(4,\)",
    'return Step({"seen": np.array([1.0, 2.0, 0.5, 1.0])[:n]})': (
        "`seen` is 0.5 of float64; expected integers, in row 2 of a batch of 4"
    ),
    "raise SystemExit(3)": "raises SystemExit: 3, in row 0 of a batch of 4",
    "batch.addresses[0] = 0; " + GOOD: "raises ValueError: assignment destination is read-only",
    'return Step({"seen": np.array([None] * n)})': "`seen` is None of object; expected integers",
    'return Step({"seen": np.array(["a"] * n)})': "`seen` is a of <U1; expected integers",
    'return Step({"seen": np.full(n, 1 << 62)})': "`seen` is 4611686018427387904 of int64",
    "return Step(None)": "answers counts of NoneType; expected a dict of counters, in row 0",
    'return Step({"seen": [[1], [1, 2]]})': "`seen` is no array: ",
    f"{PASS_ON} 3)": "passes on int; expected a Batch, in row 0 of a batch of 4",
    f"{PASS_ON} Batch(None, *{ROWS}))": "passes on a Batch with kinds = None; expected Kinds",
    f"{PASS_ON} Batch((), *{ROWS}))": "passes on a Batch with a kind of 0 to 0; it has 0 kinds",
    f"{PASS_ON} Batch(batch.kinds, *[a[:, None] for a in {ROWS}]))": (
        r"passes on a Batch with kind = int64 \(4, 1\); expected integers \(rows,\)"
    ),
    f"{PASS_ON} Batch(batch.kinds, *{ROWS.replace('batch.row', '1.5 * batch.row')}))": (
        r"passes on a Batch with row = float64 \(4,\); expected integers \(rows,\)"
    ),
    'return Step({"seen": np.array([1.0, np.nan, 1.0, 1.0])[:n]})': (
        "`seen` is nan of float64; expected integers, in row 1"
    ),
}
"""What a model does wrong, and what is said of it."""


def own_device(folder: Path, model: str) -> str:
    """A device of a user's own, with one stage more."""
    file = folder / "own.toml"
    stage = f'[stage.own]\nmodel = "{model}"\nfrom = ["global"]\nscope = "gpu"\n'
    file.write_text(f'name = "Own"\nbase = "h100"\n{stage}')
    return str(file)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    rows = [Access(warp(base=0x10000000 + 0x200 * n), step=n) for n in range(4)]
    return hand_trace(tmp_path / "a.cutrace", rows)


def seen(trace: Trace, device: str) -> int:
    """What the counter of the own model counts of loads."""
    (launch,) = analyze(trace, device=device).launches
    return int(launch.raw.counts["global_load_seen"].sum())


def test_a_model_in_a_file_is_seen_from_the_devices_folder(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    file, device = tmp_path / "mine.py", own_device(tmp_path, "mine.py:Mine")
    file.write_text(FILE.format(body=GOOD))
    assert seen(trace, device) == 4
    file.write_text(FILE.format(body=GOOD.replace("self.unit", "3 * self.unit")))
    assert seen(trace, device) == 12  # a file that has changed is read again


def test_a_model_can_come_with_a_package(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name = "offsets"

        def load(self) -> Any:
            return own_models.Offsets

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry()])
    (launch,) = analyze(trace, device=own_device(tmp_path, "offsets"), caches=False).launches
    places = [(0x10000000 + 0x200 * n) % 96 for n in range(4)]
    assert launch.raw.counts["global_load_place"].sum() == sum(places)
    with pytest.raises(CutraceError, match=r"no model 'offset'; nearest: offsets"):
        analyze(trace, device=own_device(tmp_path, "offset"))


@pytest.mark.parametrize("body", FAULTS)
def test_a_model_that_errs_is_named_with_the_row_and_the_line(
    tmp_path: Path, trace: Trace, body: str
) -> None:
    (tmp_path / "mine.py").write_text(FILE.format(body=body))
    device = own_device(tmp_path, "mine.py:Mine")
    line = 15 if "raises" in FAULTS[body] else 13  # of what raises, or of `def step`
    said = rf"model .*/mine.py:Mine: {FAULTS[body]}.*\(.*/mine.py:{line}\)$"
    with pytest.raises(CutraceError, match=said):
        seen(trace, device)


MEMBERS = {
    "def steps(self, batch): ...": ("Mine has no `step`; nearest: steps", 1),
    "step = 3": ("Mine: step = 3; expected a method that takes a Batch", 4),
    "def step(self): ...": (r"Mine: step\(batch\): too many positional arguments", 4),
    "def step(self, batch, more): ...": (r"Mine: step\(batch\): missing a required argument", 4),
    "period = True": ("Mine: period = True; expected bytes, or 0", 4),
    "period = 0.5": ("Mine: period = 0.5; expected bytes, or 0", 4),
    "counters = ('seen', 'seen')": (r"counters = \('seen', 'seen'\); expected names", 4),
    "serves_units = 'yes'": ("Mine: serves_units = 'yes'; expected True or False", 4),
    "adds_up: int = 1": ("Mine: adds_up = 1; expected True or False", 4),
    "step_repeated = None": ("Mine: step_repeated = None; expected a method", 4),
    "period = property(lambda self: 1 // 0)": ("Mine: raises ZeroDivisionError", 4),
    "def __init__(self): self.period = -1": ("Mine: period = -1; expected bytes, or 0", 1),
    "def __init__(self): helper()": ("Mine: raises IndexError: list index out of range", 5),
}
"""A line of a model's class, what is said of it, and the line that is named."""


@pytest.mark.parametrize("line", MEMBERS)
def test_a_member_that_is_missing_or_wrong_is_named_with_its_line(
    tmp_path: Path, trace: Trace, line: str
) -> None:
    said, number = MEMBERS[line]
    step = "" if "step" in line and "repeated" not in line else "def step(self, batch): ..."
    body = f"class Mine:\n    counters = ('seen',); period = 0\n    {step}\n    {line}\n"
    (tmp_path / "mine.py").write_text(f"{body}def helper(): return [][0]\n")
    with pytest.raises(CutraceError, match=rf"model .*{said}.* \(.*mine.py:{number}\)$"):
        seen(trace, own_device(tmp_path, "mine.py:Mine"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("3", "answers int; expected a Step"),
        ("Step({})", "answers without its counter `seen`"),
        ('Step({"seen": np.zeros(rows.groups + 1, int)})', r"`seen` has the shape \(\d+,\)"),
    ],
)
def test_a_model_that_errs_on_repeated_rows_is_named_with_its_line(
    tmp_path: Path, trace: Trace, answer: str, said: str
) -> None:
    """Behind the coalescer a model gets the requests of equal rows together."""
    text = f"    def step_repeated(self, rows):\n        return {answer}\n"
    (tmp_path / "mine.py").write_text(FILE.format(body=GOOD) + text)
    file = Path(own_device(tmp_path, "mine.py:Mine"))
    file.write_text(file.read_text().replace('["global"]', '["coalescer"]'))
    with pytest.raises(CutraceError, match=rf"model .*mine.py:Mine: {said}.*mine.py:\d+\)$"):
        seen(trace, str(file))


def test_a_model_of_a_package_that_raises_is_named_with_its_line(
    tmp_path: Path, trace: Trace
) -> None:
    line = inspect.getsource(own_models).splitlines().index("        lanes = self.width // 0") + 1
    device = own_device(tmp_path, "own_models:Divided")
    with pytest.raises(CutraceError, match=rf"row 0 of .*own_models.py:{line}\)$"):
        seen(trace, device)
    with pytest.raises(CutraceError, match=r"has no `step` \(.*/own_models.py:\d+\)$"):
        seen(trace, own_device(tmp_path, "own_models:Countless"))


def test_a_model_that_takes_long_is_named_once_with_the_row(
    tmp_path: Path,
    trace: Trace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    odd = "(batch.addresses == 0x10000400).any()"
    body = f"time.sleep(1e-3 * n + (0.02 if {odd} else 0)); {GOOD}"
    text = FILE.format(body=body).replace("import numpy", "import time\nimport numpy")
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.setattr(guarded, "LONG", 0.01)
    assert seen(trace, own_device(tmp_path, "mine.py:Mine")) == 4
    said = r"mine.py:Mine is slow: 0 s for 4 rows, [\d,]+ us a row, more than 100; row 2 alone"
    assert len(re.findall(said, capsys.readouterr().err)) == 1


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, trace: Trace) -> None:
    device = own_device(tmp_path, "mine.py:Mine")
    with pytest.raises(CutraceError, match=r"cannot import model .*No such file"):
        seen(trace, device)
    (tmp_path / "mine.py").write_text("class Mine:\n    counters = ()\n")
    with pytest.raises(CutraceError, match=r"model .*mine.py:Mine has no `period`"):
        seen(trace, device)
    for text, said in (
        ("period = -1", "period = -1; expected bytes, or 0"),
        ("period = 'a'", "period = 'a'; expected bytes, or 0"),
        ("counters = 'seen'", "counters = 'seen'; expected names"),
        ("counters = None", "counters = None; expected names"),
        ("def __init__(self): 1 / 0", "raises ZeroDivisionError: division by zero"),
    ):
        (tmp_path / "mine.py").write_text(FILE.format(body=GOOD) + f"    {text}\n")
        with pytest.raises(CutraceError, match=f"model .*mine.py:Mine: {said}"):
            seen(trace, device)
    (tmp_path / "mine.py").write_text("1 / 0")
    with pytest.raises(CutraceError, match=r"cannot import model .*ZeroDivision.*mine.py:1\)$"):
        seen(trace, device)

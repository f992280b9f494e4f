"""Advice on pairs of kernels: `tests/advice` has a bad and a good one in each file.

`// expect: RULE on DEVICES` says which rule must find the first launch's fault; of the second
nothing may be said on these devices. Where RULE is `nothing` both are good. The kernels are
small on purpose: that their grids leave SMs idle counts only where it is the RULE.
"""

import re
from pathlib import Path

import pytest

from cutrace.analyzer.advice.advise import advise, rule_names
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

PAIRS = sorted((Path(__file__).parents[2] / "advice").glob("*.cu"))
NOTHING = "nothing"
ALL_BUT_SIZE = {*rule_names()} - {"small_grid"}
EXPECT = re.compile(r"// expect: (\w+) on (.+)")


@pytest.mark.parametrize("source", PAIRS, ids=lambda path: path.stem)
def test_the_bad_kernel_is_told_and_the_good_one_is_left_alone(
    source: Path, tmp_path: Path
) -> None:
    expected = EXPECT.search(source.read_text())
    assert expected
    rule, devices = expected[1], expected[2].split()
    trace = read_trace(record(source, [], tmp_path / "t.cutrace"))
    told = advise(trace, analyze(trace, devices))
    told = [
        (launch, [f for f in found if f.rule in {rule, *ALL_BUT_SIZE}]) for launch, found in told
    ]
    bad = {launch.device: found for launch, found in told if launch.number == 0}
    good = {launch.device: found for launch, found in told if launch.number == 1}
    assert bad.keys() == good.keys() == {*devices}
    for device in devices:
        matches = {finding.rule for finding in bad[device]}
        assert rule in matches or (rule == NOTHING and not matches), device
        assert good[device] == [], device


def test_there_is_a_pair_for_every_rule() -> None:
    matches = [EXPECT.search(source.read_text()) for source in PAIRS]
    assert {match[1] for match in matches if match} == {*rule_names(), NOTHING}

"""When two estimates differ: against pairs of kernels that were profiled on an H100 and an H200.

A pair is two kernels of one program whose names share a word (`sum_v1` and `sum_v2`, `turn<0>` and
`turn<1>`), each by its first launch: mostly two ways to do one task. *programs* are left out: their
estimates come from PTX, not from machine code.
"""

import csv
import re
from collections import defaultdict
from itertools import combinations
from math import exp, log
from pathlib import Path

import pytest

from cutrace.analyzer.comparison.difference import (
    CHANGE_ERROR,
    PAIR_ERROR,
    difference,
    ratio_error,
)
from cutrace.base.dataclass import dataclass
from cutrace.models.replay.device.measured import WITHIN

TABLES = ("h100", "h200", "h100_unseen", "h200_unseen", "h100_third_draw", "h200_fourth_draw")
UNSEEN = ("fresh programs", "drawn programs")
"""Sets that were profiled after the model was made."""
COMMON = {"kernel", "gpu", "cuda", "global", "shared", "device", "kern", "naive", "optimized"}
"""Words of names that say nothing of the task."""
WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")


@dataclass(frozen=True)
class Pair:
    """Two kernels: ratios of their times, measured and estimated."""

    name: str
    is_unseen: bool
    measured: float
    estimated: float

    @property
    def error(self) -> float:
        return exp(abs(log(self.measured / self.estimated)))

    @property
    def verdict(self) -> str:
        return difference((self.estimated, self.estimated), (1.0, 1.0)).verdict


def words(kernel: str) -> set[str]:
    name = kernel.partition("<")[0].partition("(")[0].rpartition("::")[2]
    return {word.lower() for word in WORD.findall(name) if len(word) > 2} - COMMON or {name}


def rows() -> list[dict[str, str]]:
    every = []
    for table in TABLES:
        path = Path(__file__).parent / "time" / f"{table}.csv"
        with path.open(newline="") as opened:
            every += [{**row, "chip": table[:4]} for row in csv.DictReader(opened)]
    return [row for row in every if row["set"] != "programs"]


def all_pairs() -> list[Pair]:
    programs = defaultdict[tuple[str, ...], dict[str, dict[str, str]]](dict)
    for row in rows():
        key = row["set"], row["program"], row["chip"]
        programs[key].setdefault(row["kernel"], row)
    return [
        Pair(
            f"{program}: {one['kernel']}, {other['kernel']}",
            set_ in UNSEEN,
            float(one["measured"]) / float(other["measured"]),
            float(one["estimate"]) / float(other["estimate"]),
        )
        for (set_, program, _), kernels in programs.items()
        for one, other in combinations(kernels.values(), 2)
        if words(one["kernel"]) & words(other["kernel"])
    ]


PAIRS = all_pairs()


def is_similar(pair: Pair) -> bool:
    """Return whether the interval is not yet that of two independent estimates."""
    return ratio_error(pair.estimated) < WITHIN[1] / WITHIN[0]


@pytest.mark.parametrize("which", ["similar", "unseen", "close"])
def test_nine_of_ten_measured_ratios_are_in_the_interval(which: str) -> None:
    some = {
        "similar": [pair for pair in PAIRS if is_similar(pair)],
        "unseen": [pair for pair in PAIRS if pair.is_unseen and is_similar(pair)],
        "close": [pair for pair in PAIRS if abs(log(pair.estimated)) < log(4 / 3)],
    }[which]
    assert len(some) > 140
    within = [pair.error <= ratio_error(pair.estimated) for pair in some]
    assert 0.88 <= sum(within) / len(some) <= 0.94


@pytest.mark.parametrize("only_unseen", [False, True])
def test_six_of_seven_large_ratios_are_in_the_interval_of_two_estimates(only_unseen: bool) -> None:
    large = [p for p in PAIRS if not is_similar(p) and (p.is_unseen or not only_unseen)]
    within = [pair.error <= ratio_error(pair.estimated) for pair in large]
    assert len(large) > 50
    assert sum(within) / len(large) == pytest.approx(6 / 7, abs=0.02)


def test_no_interval_is_wider_than_that_of_two_estimates() -> None:
    assert ratio_error(2.0) < ratio_error(2.2) == ratio_error(1 / 50) == pytest.approx(5 / 3)
    far = difference((5000.0, 5000.0), (100.0, 100.0))
    assert (far.low, far.high) == pytest.approx((30, 250 / 3))


def test_the_error_of_similar_estimates_is_smaller_than_that_of_one_estimate() -> None:
    errors = sorted(pair.error for pair in PAIRS if abs(log(pair.estimated)) < log(1.1))
    assert errors[int(0.9 * len(errors))] < PAIR_ERROR < WITHIN[1] / WITHIN[0]


def test_a_variant_is_called_faster_only_where_97_of_100_are() -> None:
    decided = [pair for pair in PAIRS if pair.verdict != "same"]
    wrong = [pair for pair in decided if (pair.measured > 1) != (pair.verdict == "faster")]
    assert len(decided) >= 200
    assert len(wrong) <= 0.03 * len(decided), [pair.name for pair in wrong]


def test_a_real_difference_is_seen() -> None:
    real = [pair for pair in PAIRS if max(pair.measured, 1 / pair.measured) > 1.5]
    assert sum(pair.verdict != "same" for pair in real) / len(real) > 0.85


def test_one_estimate_has_the_interval_that_is_printed() -> None:
    ratios = [float(row["measured"]) / float(row["estimate"]) for row in rows()]
    within = [WITHIN[0] <= ratio <= WITHIN[1] for ratio in ratios]
    assert 0.89 <= sum(within) / len(within) <= 0.92


def test_the_threshold_follows_from_the_two_constants() -> None:
    threshold = PAIR_ERROR ** (1 / (1 - CHANGE_ERROR))
    assert threshold == pytest.approx(1.3225)
    for ratio, verdict in ((threshold * 1.001, "faster"), (threshold * 0.999, "same")):
        assert difference((ratio, ratio), (1.0, 1.0)).verdict == verdict
        opposite = {"faster": "slower", "same": "same"}[verdict]
        assert difference((1.0, 1.0), (ratio, ratio)).verdict == opposite


def test_a_sample_between_two_ends_is_no_difference() -> None:
    assert difference((5000.0, 41000.0), (5000.0, 41000.0)).verdict == "same"
    assert difference((5000.0, 41000.0), (1000.0, 1100.0)).verdict == "faster"

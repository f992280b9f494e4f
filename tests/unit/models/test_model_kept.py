"""Replays are done once: what was counted is found again, and nothing that is out of date."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.analyzer.counting import footprint
from cutrace.analyzer.counting.footprint import count_touched
from cutrace.analyzer.profile import Profile, analyze
from cutrace.analyzer.time import sample_warps as sampling
from cutrace.analyzer.time.sample_warps import sample_warps
from cutrace.analyzer.why import search
from cutrace.analyzer.why.search import Searcher
from cutrace.base import cache
from cutrace.base.errors import CutraceError
from cutrace.models.replay import replay, replay_cache
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.replay import replay as count
from cutrace.traces.reader import Trace, read_trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4 * n), step=n) for n in (1, 3)])


@pytest.fixture
def replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices that are replayed, one after another; results are kept in a new folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(replay_cache, "WORTH", 0)
    devices: list[str] = []

    def note(trace: Any, some: Any, options: Any) -> Any:
        devices.extend(device.key for device in some)
        return count(trace, some, options)

    monkeypatch.setattr(replay, "replay", note)
    return devices


def same(ours: Profile, theirs: Profile) -> bool:
    return all(
        mine.counters == its.counters
        and mine.instructions.equals(its.instructions)
        and mine.remarks == its.remarks
        for mine, its in zip(ours.launches, theirs.launches, strict=True)
    )


@pytest.mark.slow
def test_a_second_question_is_answered_without_a_replay(trace: Trace, replayed: list[str]) -> None:
    first = analyze(trace, device="h200")
    assert replayed == ["h200"]
    assert same(analyze(read_trace(trace.path), device="h200"), first)
    assert replayed == ["h200"]
    both = analyze(trace, device=("k20", "h200"))
    assert replayed == ["h200", "k20"]
    assert [launch.device for launch in both.launches] == ["k20", "h200"]
    assert both.launches[1].counters == first.launches[0].counters


@pytest.mark.slow
def test_devices_that_count_alike_are_replayed_once(
    trace: Trace, replayed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two A100 differ in the bandwidth of their memory, an RTX A6000 in more."""
    several = analyze(trace, device=("a100", "a100-40gb", "a6000"))
    assert replayed == ["a100", "a6000"]
    monkeypatch.setattr(replay_cache, "WORTH", 1 << 40)  # nothing is kept
    alone = analyze(trace, device="a100-40gb")
    assert replayed == ["a100", "a6000", "a100-40gb"]
    assert several.launches[1].counters == alone.launches[0].counters
    assert several.launches[1].bounds == alone.launches[0].bounds
    assert several.launches[1].bounds != several.launches[0].bounds


@pytest.mark.parametrize(
    "question",
    [
        {"dlcm": "cg"},
        {"caches": False},
        {"schedule": "greedy-oldest"},
        {"l2": "warm"},
        {"as_if": True},
        {"set": {"l2.bytes": 16 << 20}},
        {"align": {"data": 128}},
    ],
)
def test_what_else_is_asked_is_another_replay(
    trace: Trace, replayed: list[str], question: dict[str, Any]
) -> None:
    analyze(trace, device="h200")
    other = analyze(trace, device="h200", **question)
    assert replayed == ["h200", "h200"]
    assert same(analyze(trace, device="h200", **question), other)
    assert replayed == ["h200", "h200"]


@pytest.mark.slow
def test_a_trace_that_was_recorded_again_is_replayed(trace: Trace, replayed: list[str]) -> None:
    (before,) = analyze(trace, device="h200").launches
    again = hand_trace(trace.path.with_name("b.cutrace"), [Access(warp(stride=4))])
    (after,) = analyze(again, device="h200").launches
    assert replayed == ["h200", "h200"]
    assert before.counters["global_load_requests"] == 2
    assert after.counters["global_load_requests"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ('"""Banks: the passes', '"""Lanes\n\nand banks: the passes', True),
        ('    """The banks of one device.\n', '    # A note.\n    """Its banks.\n', True),
        ("WORD = 4\n", 'WORD = 4  # bytes\n"""The bytes of a word."""\n\n', True),
        ("WORD = 4\n", "WORD = 8\n", False),
        ('RULES = ("broadcast"', 'RULES = ("broad cast"', False),
        ("wide_extra: int = 0\n", "wide_extra: int = 1\n", False),
    ],
)
def test_another_comment_keeps_what_was_counted_and_another_constant_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, is_same: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    digest_of = partial(cache.package_digest.__wrapped__, *replay_cache.STAGES)
    root, copy = Path(cache.__file__).parents[1], tmp_path / "copy"
    before = digest_of()
    for stage in replay_cache.STAGES:
        shutil.copytree(root / stage, copy / stage, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(copy / "base" / "cache.py"))
    assert digest_of() == before
    banks = copy / "models" / "banks.py"
    text = banks.read_text("utf-8")
    assert text.count(old) == 1
    banks.write_text(text.replace(old, new), "utf-8")
    assert (digest_of() == before) is is_same
    assert (digest_of() == before) is is_same  # now from the cache


@pytest.mark.parametrize("moment", ["load_counts", "replay", "store_counts"])
def test_nothing_is_kept_of_a_trace_that_was_recorded_again_meanwhile(
    trace: Trace, replayed: list[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    function, again = getattr(replay, moment), [[Access(warp(stride=4))]]

    def renewed(*arguments: Any) -> Any:
        result = function(*arguments)
        if again:
            hand_trace(trace.path, again.pop())
        return result

    monkeypatch.setattr(replay, moment, renewed)
    with pytest.raises(CutraceError, match="replaced meanwhile"):
        analyze(trace, device="h200")
    hand_trace(trace.path, [Access(warp(stride=4 * n), step=n) for n in (1, 3)])
    (launch,) = analyze(trace.path, device="h200").launches
    assert launch.counters["global_load_requests"] == 2
    (launch,) = analyze(hand_trace(trace.path, [Access(warp(stride=4))]), device="h200").launches
    assert launch.counters["global_load_requests"] == 1


def _shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [_shorten, _flip, lambda path: path.write_bytes(b"")])
def test_what_is_broken_is_replayed(
    trace: Trace, replayed: list[str], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    first = analyze(trace, device="h200")
    for found in (tmp_path / "cache" / "cutrace" / replay_cache.KIND).iterdir():
        harm(found)
    assert same(analyze(trace, device="h200"), first)
    assert replayed == ["h200", "h200"]
    assert same(analyze(trace, device="h200"), first)
    assert replayed == ["h200", "h200"]


def test_where_nothing_can_be_kept_the_answer_is_the_same(
    trace: Trace, replayed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = analyze(trace, device="h200")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert same(analyze(trace, device="h200"), first)
    assert same(analyze(trace, device="h200"), first)
    assert replayed == ["h200", "h200", "h200"]


def test_a_small_launch_is_not_worth_the_search(
    trace: Trace, replayed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_cache, "WORTH", 1000)
    analyze(trace, device="h200")
    assert replayed == ["h200"]
    assert not (tmp_path / "cache").exists()


def test_what_arrays_are_touched_is_counted_once(
    trace: Trace, replayed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (launch,) = trace.launches
    first = count_touched(launch)
    assert first.rows() == [("data", 32 * 4 + 32 * 4 - 11 * 4)]  # words 0 to 31; 0, 3 to 93
    monkeypatch.setattr(footprint, "_distinct_rows", None)
    assert count_touched(launch).equals(first)


def test_what_warps_ran_is_looked_at_once(
    trace: Trace, replayed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (launch,) = trace.launches
    first = sample_warps(launch)
    monkeypatch.setattr(sampling, "first_touches", None)
    again = sample_warps(launch)
    assert again.touches == first.touches
    assert again.touches.firsts == {0: 1 / 2}  # both begin at one place
    # 32 words lie in one line, a bank each; 0, 3 to 93 do, too, in three lines of four a cycle
    assert again.touches.passes == {0: 1.0}
    assert (again.histories, again.touches.any_order) == (first.histories, frozenset())
    assert again.sizes.tolist() == first.sizes.tolist()


def test_rows_that_differ_are_looked_for_once(
    trace: Trace, replayed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (launch,) = trace.launches

    def worst(pcs: list[int] | None) -> list[tuple[str, int, int]]:
        found = Searcher(launch, load_device("h200"), "ca").worst(pcs)
        return [(access.identifier, access.cost, access.ideal) for access in found]

    # 32 words that are 12 bytes apart lie in 12 sectors, and would fit into 4
    assert worst(None) == [("0.0.0.3.0", 12, 4)]
    monkeypatch.setattr(search, "_first_rows", None)
    assert (worst(None), worst([0]), worst([1])) == ([("0.0.0.3.0", 12, 4)],) * 2 + ([],)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(search, "FEW", 0)
    assert (worst(None), worst([0]), worst([1])) == ([("0.0.0.3.0", 12, 4)],) * 2 + ([],)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "third"))
    monkeypatch.setattr(search, "FEW", 2)
    monkeypatch.setattr(search, "TABLE", 0)
    assert worst(None) == [("0.0.0.3.0", 12, 4)]

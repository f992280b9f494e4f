"""What a chip counted of whole programs: that the tables agree with one another and with CUDA.

The comparison of these counts with cutrace's needs the programs, which are not in this tree:
scripts/compare_programs.py makes it and keeps both sides of each pair, from which a section of
docs/validation.md is written. Here the chip's side is held to what was captured, the figures to
arithmetic, and every difference to a reason.
"""

from pathlib import Path

import polars as pl
import pytest
from silicon import unseen
from silicon.programs import Beside
from silicon.programs_page import KERNELS, OTHERS, kept, reason, shares

FOLDER = Path(__file__).parent / "programs"
RUN = ("size", "collection", "program")


@pytest.fixture(scope="module")
def launches() -> pl.DataFrame:
    """A row for a launch."""
    return pl.read_parquet(FOLDER / "h200_launches.parquet")


@pytest.fixture(scope="module")
def code() -> pl.DataFrame:
    """A row for an opcode of a kernel."""
    return pl.read_parquet(FOLDER / "h200_code.parquet")


@pytest.fixture(scope="module")
def compared() -> list[Beside]:
    """Pairs of counts, as they were kept."""
    return kept()


def test_of_comparable_counts_97_percent_are_near_and_of_all_90(compared: list[Beside]) -> None:
    counts = [beside for beside in compared if beside.kind == "count"]
    every, near, _ = shares(counts)
    comparable, close, _ = shares(beside for beside in counts if not beside.why_not)
    assert every > 4000
    assert comparable > 0.8 * every
    assert close >= 0.97 * comparable
    assert near >= 0.90 * every


def test_programs_of_collections_that_were_not_at_hand_are_counted_as_well() -> None:
    counts = [beside for beside in kept(OTHERS) if beside.kind == "count"]
    every, near, _ = shares(counts)
    comparable, close, _ = shares(beside for beside in counts if not beside.why_not)
    assert every > 1000
    assert comparable > 0.75 * every
    assert close >= 0.97 * comparable
    assert near >= 0.90 * every
    assert len({beside.run for beside in counts}) >= 20


def test_kernels_of_libraries_that_were_never_captured_are_counted_as_well() -> None:
    counts = [beside for beside in kept(KERNELS) if beside.kind == "count"]
    every, near, _ = shares(counts)
    comparable, close, _ = shares(beside for beside in counts if not beside.why_not)
    assert len({beside.run for beside in counts}) >= 60
    assert comparable > 0.9 * every > 2000
    assert close >= 0.97 * comparable
    assert near >= 0.90 * every


OF_DRAWS = ((80, 0.97), (34, 0.90), (99, 0.95), (82, 0.97))
"""How many programs a draw has, and of all counts those within 1 %: of the second's some print."""


@pytest.mark.parametrize(
    ("draw", "programs", "least"),
    [(draw, *numbers) for draw, numbers in zip(unseen.DRAWS, OF_DRAWS, strict=True)],
)
def test_programs_that_were_never_run_before_end_and_count_as_on_the_chip(
    draw: unseen.Draw, programs: int, least: float
) -> None:
    ended = [each for each in draw.ended() if each.is_judged]
    counts = [beside for beside in kept(draw.compared) if beside.kind == "count"]
    every, near, _ = shares(counts)
    comparable, close, _ = shares(beside for beside in counts if not beside.why_not)
    assert len(ended) >= programs
    assert sum(each.is_whole for each in ended) >= 0.9 * len(ended)
    assert [e.program for e in ended if not e.is_whole and not e.why] == []
    assert len({beside.run for beside in counts}) >= 0.7 * programs
    assert comparable > 0.9 * every > 40 * programs
    assert close >= 0.97 * comparable
    assert near >= least * every


@pytest.mark.parametrize(
    ("table", "pairs_of"),
    [
        (FOLDER / "others_launches.parquet", OTHERS),
        (FOLDER / "kernels_launches.parquet", KERNELS),
        *((draw.launches, draw.compared) for draw in unseen.DRAWS),
    ],
)
def test_the_chips_side_of_other_programs_is_what_was_captured(table: Path, pairs_of: Path) -> None:
    launches = pl.read_parquet(table)
    captured: dict[tuple[str, ...], set[float]] = {}
    pairs = [beside for beside in kept(pairs_of) if beside.metric in launches.columns]
    for row in launches.iter_rows(named=True):
        for metric in {beside.metric for beside in pairs}:
            captured.setdefault((*(row[name] for name in RUN), metric), set()).add(row[metric])
    assert len(pairs) > 800
    assert [b for b in pairs if b.theirs not in captured[*b.run, b.metric]] == []


def test_each_comparable_count_that_is_not_near_has_its_reason(compared: list[Beside]) -> None:
    drawn = (beside for draw in unseen.DRAWS for beside in kept(draw.compared))
    both = [*compared, *kept(OTHERS), *kept(KERNELS), *drawn]
    far = [b for b in both if b.kind == "count" and not b.why_not and not b.is_near]
    assert [(b.run, b.kernel, b.metric) for b in far if not reason(b)] == []


def test_the_chips_side_of_a_pair_is_what_was_captured(
    compared: list[Beside], launches: pl.DataFrame
) -> None:
    by_hardware = {*launches.select(RUN).iter_rows()}  # of the others there is patched code alone
    pairs = [b for b in compared if b.metric in launches.columns and b.run in by_hardware]
    captured: dict[tuple[str, ...], set[float]] = {}
    for row in launches.iter_rows(named=True):
        for metric in {b.metric for b in pairs}:
            captured.setdefault((*(row[name] for name in RUN), metric), set()).add(row[metric])
    assert len(pairs) > 3000
    assert [b for b in pairs if b.theirs not in captured[*b.run, b.metric]] == []


def test_forty_programs_of_three_collections_were_captured(
    launches: pl.DataFrame, code: pl.DataFrame
) -> None:
    names = launches.select("collection", "program").unique()
    assert len(names) >= 40
    assert names["collection"].n_unique() == 3
    assert len(code.select("collection", "program").unique()) >= 120
    assert launches.select(*RUN, "number").is_duplicated().sum() == 0


def test_a_launch_has_the_warps_of_its_blocks(launches: pl.DataFrame) -> None:
    threads, blocks = (
        pl.col(name).list.eval(pl.element().cum_prod().last()).list.first()
        for name in ("block", "grid")
    )
    warps = (threads + 31) // 32 * blocks
    assert launches.select((warps == pl.col("smsp__warps_launched.sum")).all()).item()


def test_time_is_cycles_over_their_rate(launches: pl.DataFrame) -> None:
    """Launches of more than 100 us: the profiler takes both in passes of their own."""
    long = launches.filter(pl.col("gpu__time_duration.sum") > 100_000)
    cycles = pl.col("gpu__time_duration.sum") * pl.col("gpc__cycles_elapsed.avg.per_second") / 1e9
    apart = long.select((cycles / pl.col("gpc__cycles_elapsed.max") - 1).abs().max()).item()
    assert len(long) >= 20
    assert apart < 0.05


def test_an_access_in_perfect_order_needs_no_fewer_sectors_or_wavefronts(
    code: pl.DataFrame,
) -> None:
    least = (
        pl.col("sectors") >= pl.col("sectors_ideal"),
        pl.col("threads") >= pl.col("threads_on"),
    )
    assert code.select(*(each.all().alias(str(n)) for n, each in enumerate(least))).row(0) == (
        True, True,
    )  # fmt: skip
    assert code.filter(pl.col("threads") > 32 * pl.col("instructions")).is_empty()


def test_instructions_of_the_code_are_those_that_the_hardware_counted(
    launches: pl.DataFrame, code: pl.DataFrame
) -> None:
    """Two captures, one by patched code and one by counters: most kernels do the same in both."""
    first = launches.filter(number=0).select(*RUN, "kernel", "smsp__inst_executed.sum")
    patched = code.filter(launch=0).group_by(*RUN).agg(pl.col("instructions").sum())
    both = first.join(patched, on=RUN)
    same = both.filter(pl.col("instructions") == pl.col("smsp__inst_executed.sum"))
    assert len(both) >= 40
    assert len(same) >= 0.9 * len(both)

"""What a chip counted of whole programs: that the tables agree with one another and with CUDA.

The comparison of these counts with cutrace's needs the programs, which are not in this tree:
scripts/compare_programs.py makes it, and docs/validation.md has its result.
"""

from pathlib import Path

import polars as pl
import pytest

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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hand_trace import Access, hand_trace, instruction, instruction_table, launch
from hypothesis import given, settings
from hypothesis import strategies as st
from warps import BASE, FULL, warp

from cutrace.analyzer.profile import analyze
from cutrace.base.errors import CutraceError
from cutrace.models.analyses.occupancy import Occupancy, launch_occupancy
from cutrace.models.replay import replay as replay_module
from cutrace.models.replay.device.catalog import FOLDER
from cutrace.models.replay.device.device import Device, load_device
from cutrace.models.replay.histogram import accesses, counting
from cutrace.models.replay.histogram.counts import LaunchCounts
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.models.replay.replay import replay
from cutrace.models.replay.rows import touching
from cutrace.traces.reader import LaunchTrace, read_trace
from cutrace.traces.schema import Array, Space
from cutrace.traces.writer import TraceWriter

ARRAYS = (
    Array("in", Space.GLOBAL, BASE, 4096, 4),
    Array("out", Space.GLOBAL, BASE + 4096, 4096, 4),
    Array("tile", Space.SHARED, 0, 1024, 4),
)


def one(trace: LaunchTrace, device: str, **options: object) -> LaunchCounts:
    """Replay on one device."""
    return replay(trace, [load_device(device)], ReplayOptions(**options))[0]  # type: ignore[arg-type]


def total(counts: LaunchCounts, name: str, *scopes: str) -> int:
    """A raw counter's sum over the scopes named, or all."""
    table = counts.counts.filter(pl.col("scope").is_in(scopes)) if scopes else counts.counts
    return int(table[name].sum())


def row(counts: LaunchCounts, pc: int, array: str) -> dict[str, int]:
    """The one row of a pc and an array."""
    return counts.counts.row(
        by_predicate=(pl.col("pc") == pc) & (pl.col("array") == array), named=True
    )


def write_reverse(path: Path, through_shared: bool) -> LaunchTrace:
    """262,144 ints in 1024 blocks of 256: warp w of block b reads words 256 b + 32 w + lane."""
    count = 262144
    block = np.repeat(np.arange(1024), 8)
    wid = np.tile(np.arange(8), 1024)
    arrays = (
        Array("in", Space.GLOBAL, BASE, 4 * count, 4),
        Array("out", Space.GLOBAL, BASE + 4 * count, 4 * count, 4),
    )
    forwards, backwards = 4 * np.arange(32), -4 * np.arange(32)
    pattern = 0 if through_shared else 1
    out = 4 * (
        256 * (1023 - block) + 32 * wid if through_shared else count - 1 - 256 * block - 32 * wid
    )
    with (
        TraceWriter(path) as trace,
        trace.launch(launch(grid=(1024, 1, 1), block=(256, 1, 1), arrays=arrays)) as rows,
    ):
        rows.instructions(instruction_table([instruction(0), instruction(1, "st.global.u32")]))
        rows.patterns([FULL, FULL], np.array([forwards, backwards], np.int32))
        rows.accesses(block, wid, 0, 0, 0, 1, BASE + 4 * (256 * block + 32 * wid), 0)
        rows.accesses(block, wid, 1, 0, 1, 1, BASE + 4 * count + out, pattern)
    return read_trace(path).launches[0]


def test_the_first_profilers_figures_for_reversing_an_array_straight(tmp_path: Path) -> None:
    counts = one(write_reverse(tmp_path / "a.cutrace", False), "8800gtx", profiled_blocks=122)
    seen = ("sm", "cluster")
    assert total(counts, "global_load_coherent_64", *seen) == 122 * 16 == 1952
    assert total(counts, "global_load_incoherent_32", *seen) == 0
    assert 2 * total(counts, "global_store_incoherent_32", *seen) == 122 * 16 * 16 * 2 == 62464
    assert total(counts, "global_store_coherent_64", *seen) == 0
    assert (counts.blocks_of_cluster, counts.blocks_of_sm) == (122, 61)


def test_the_first_profilers_figures_for_reversing_through_shared(tmp_path: Path) -> None:
    counts = one(write_reverse(tmp_path / "a.cutrace", True), "8800gtx", profiled_blocks=127)
    seen = ("sm", "cluster")
    assert total(counts, "global_load_coherent_64", *seen) == 127 * 16 == 2032
    assert 4 * total(counts, "global_store_coherent_64", *seen) == 127 * 16 * 4 == 8128
    assert total(counts, "global_store_incoherent_32", *seen) == 0
    assert (counts.blocks_of_cluster, counts.blocks_of_sm) == (127, 64)


def test_a_row_belongs_to_the_array_of_its_lowest_active_lane(tmp_path: Path) -> None:
    rows = [
        Access(warp(), pc=0),
        Access(warp(base=BASE + 4096), pc=0),
        Access(warp(base=BASE - 512), pc=0),
        Access(warp(base=256), pc=1, space=Space.SHARED),
    ]
    trace = hand_trace(
        tmp_path / "a.cutrace",
        rows,
        launch=launch(arrays=ARRAYS),
        instructions=[instruction(0), instruction(1, "ld.shared.f32")],
    )
    counts = one(trace.launches[0], "h100")
    for array in ("in", "out", ""):
        assert row(counts, 0, array)["global_load_transactions"] == 4
    assert row(counts, 1, "tile")["shared_load_requests"] == 1
    assert counts.mixed.is_empty()


def test_a_row_over_two_arrays_counts_once_more_as_mixed(tmp_path: Path) -> None:
    rows = [Access(warp(base=BASE + 4096 - 64)), Access(warp())]
    trace = hand_trace(tmp_path / "a.cutrace", rows, launch=launch(arrays=ARRAYS))
    counts = one(trace.launches[0], "gtx580")
    assert row(counts, 0, "in")["global_load_transactions"] == 3
    assert total(counts, "global_load_transactions") == 3
    assert counts.mixed.select("pc", "array", "scope", "global_load_transactions").rows() == [
        (0, "mixed", "sm", 2)
    ]


def test_lanes_that_fall_and_start_in_the_second_array_are_mixed_too(tmp_path: Path) -> None:
    rows = [Access(warp(base=BASE + 4096 + 60, stride=-4))]
    trace = hand_trace(tmp_path / "a.cutrace", rows, launch=launch(arrays=ARRAYS))
    counts = one(trace.launches[0], "h100")
    assert row(counts, 0, "out")["global_load_requests"] == 1
    assert counts.mixed["global_load_requests"].to_list() == [1]


def test_scopes_split_the_grid_and_add_up(tmp_path: Path) -> None:
    rows = [Access(warp(), block=b) for b in range(20)]
    trace = hand_trace(tmp_path / "a.cutrace", rows, launch=launch(grid=(20, 1, 1)))
    counts = one(trace.launches[0], "8800gtx")  # cluster 0 of 8: blocks 0, 8, 16; its SM 0, 16
    requests = [total(counts, "global_load_requests", s) for s in ("sm", "cluster", "rest")]
    assert requests == [2, 1, 17]


def test_dlcm_decides_for_loads_that_name_no_operator(tmp_path: Path) -> None:
    rows = [Access(warp(), pc=pc) for pc in range(3)]
    table = [
        instruction(0),
        instruction(1, "ld.global.cg.f32", cache="cg"),
        instruction(2, "ld.global.ca.f32", cache="ca"),
    ]
    trace = hand_trace(tmp_path / "a.cutrace", rows, instructions=table).launches[0]
    found = {
        dlcm: one(trace, "gtx580", dlcm=dlcm)
        .counts.filter(pl.col("array") == "data")["global_load_transactions"]
        .to_list()
        for dlcm in ("ca", "cg")
    }
    assert found == {"ca": [1, 4, 1], "cg": [4, 4, 1]}


def test_an_atomic_whose_result_nobody_reads_is_a_reduction(tmp_path: Path) -> None:
    table = [
        instruction(0, "atom.global.add.u32"),
        instruction(1, "atom.global.add.u32", result_read=False),
        instruction(2, "red.global.add.u32"),
    ]
    rows = [Access(warp(), pc=pc) for pc in range(3)]
    counts = one(hand_trace(tmp_path / "a.cutrace", rows, instructions=table).launches[0], "k20")
    assert total(counts, "global_atomic_requests") == 1
    assert total(counts, "global_reduction_requests") == 2


def test_an_asynchronous_copy_loads_and_stores(tmp_path: Path) -> None:
    table = [instruction(0, "cp.async.ca.shared.global", bytes=4, cache="ca")]
    rows = [Access(warp()), Access(warp(base=0), part=1, space=Space.SHARED)]
    trace = hand_trace(tmp_path / "a.cutrace", rows, instructions=table).launches[0]
    old, new = (one(trace, device) for device in ("gtx580", "a100"))
    for counts in (old, new):
        assert total(counts, "global_load_requests") == 1
        assert total(counts, "shared_store_requests") == 1
    assert old.substitutions == (
        "asynchronous copies (from 8.0 on; 1 in the code) counted as a load and a store",
    )
    assert new.substitutions == ()


@pytest.mark.document("004.6", "the read-only path of 3.5")
def test_read_only_loads_are_substituted_before_3_5(tmp_path: Path) -> None:
    table = [instruction(0, "ld.global.nc.f32", cache="nc")]
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp())], instructions=table).launches[0]
    assert one(trace, "k20").substitutions == ()
    assert total(one(trace, "k20"), "global_load_transactions") == 4
    for dlcm, transactions in (("ca", 1), ("cg", 4)):
        counts = one(trace, "m2070", dlcm=dlcm)
        assert total(counts, "global_load_transactions") == transactions
    (said,) = counts.substitutions
    assert said == "read-only loads (from 3.5 on; 1 in the code) counted as plain global loads"


def test_a_refused_launch_has_no_counts_unless_as_if(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp())], launch=launch(block=(1024, 1, 1)))
    counts = one(trace.launches[0], "8800gtx")
    assert counts.occupancy.refusal == "cannot launch: 512 threads a block at most"
    assert counts.counts.is_empty()
    counts = one(trace.launches[0], "8800gtx", as_if=True)
    assert counts.occupancy.refusal == "cannot launch: 512 threads a block at most"
    assert total(counts, "global_load_requests") == 1


def test_devices_are_counted_together_as_they_are_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [
        Access(warp(addresses=(BASE + 4 * rng.integers(0, 900, 32)).tolist()), block=b, pc=b % 3)
        for b in range(50)
    ]
    trace = hand_trace(tmp_path / "a.cutrace", rows, launch=launch(grid=(50, 1, 1))).launches[0]
    names = ["8800gtx", "gtx280", "gtx580", "k20", "p100", "h200"]
    together = replay(trace, [load_device(name) for name in names])
    for name, counts in zip(names, together, strict=True):
        assert counts.device == name
        assert counts.counts.equals(one(trace, name).counts)


def test_an_empty_launch_counts_zero(tmp_path: Path) -> None:
    counts = one(hand_trace(tmp_path / "a.cutrace", []).launches[0], "h100")
    assert total(counts, "global_load_requests") == 0
    assert total(counts, "threads_launched") == 32


def test_rows_of_an_instruction_that_makes_none_are_a_broken_trace(tmp_path: Path) -> None:
    trace = hand_trace(
        tmp_path / "a.cutrace", [Access(warp())], instructions=[instruction(0, "add.f32", bytes=0)]
    )
    with pytest.raises(CutraceError, match="instruction 0 has no accesses to space 1"):
        one(trace.launches[0], "h100")


def own_device(folder: Path, stages: str) -> str:
    """A user's own device: an H100 with more stages."""
    file = folder / "own.toml"
    file.write_text((FOLDER / "h100.toml").read_text() + stages)
    return str(file)


SIGHTINGS = """
[stage.l1]
model = "own_models:Sightings"
from = ["coalescer"]
unit = 32
scope = "{scope}"
"""


def test_a_users_own_model_behind_the_coalescer_sees_its_transactions(tmp_path: Path) -> None:
    rows = [Access(warp(), block=b, step=s) for b in range(2) for s in range(3)]
    trace = hand_trace(tmp_path / "a.cutrace", rows, launch=launch(grid=(2, 1, 1))).launches[0]
    for scope, first in (("sm", 8), ("gpu", 4)):  # blocks 0 and 1 lie on different SMs
        device = own_device(tmp_path, SIGHTINGS.format(scope=scope))
        counts = one(trace, device)
        assert total(counts, "global_load_l1_first_time") == first
        assert total(counts, "global_load_l1_again") == 2 * 3 * 4 - first
        assert total(counts, "global_load_transactions") == 2 * 3 * 4


def test_a_period_that_is_no_power_of_two(tmp_path: Path) -> None:
    bases = [BASE + 4 * n for n in range(0, 200, 7)]
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp(base=b)) for b in bases]).launches[0]
    stage = '\n[stage.offsets]\nmodel = "own_models:Offsets"\nfrom = ["global"]\n'
    counts = one(trace, own_device(tmp_path, stage))
    assert total(counts, "global_load_place") == sum(base % 96 for base in bases)


@given(
    size=st.integers(1, 70),
    asked=st.integers(1, 40),
    held=st.sampled_from([1, 10, 1 << 17]),
    worth=st.sampled_from([-1, 1 << 60]),
    seed=st.integers(0, 5),
)
@settings(max_examples=10)
@pytest.mark.slow
def test_totals_do_not_depend_on_the_size_of_batches_nor_on_the_compiler(
    tmp_path_factory: pytest.TempPathFactory,
    size: int,
    asked: int,
    held: int,
    worth: int,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("batches")
    trace = _random_launch(folder / "a.cutrace", seed)
    device = own_device(folder, SIGHTINGS.format(scope="sm"))
    names = ["8800gtx", "gtx580", "k20", "p100", device]
    devices = [load_device(name) for name in names]
    whole = replay(trace, devices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accesses, "SLICE", size)
        patch.setattr(accesses, "ROWS_PER_QUERY", asked)
        patch.setattr(accesses, "MOST_PENDING", held)
        patch.setattr(counting, "WORTH", worth)
        patch.setattr(touching, "WORTH", worth)
        for one_way, another in zip(whole, replay(trace, devices), strict=True):
            assert one_way.counts.equals(another.counts)
            assert one_way.mixed.equals(another.mixed)


def _random_launch(path: Path, seed: int) -> LaunchTrace:
    rng = np.random.default_rng(seed)
    spaces: Sequence[Space] = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
    table = [
        instruction(0),
        instruction(1, "st.global.v2.f32", bytes=8),
        instruction(2, "ld.shared.f32"),
        instruction(3, "ld.local.v4.u32", bytes=16),
    ]
    rows = []
    for _ in range(40):
        pc = int(rng.integers(0, 4))
        space = spaces[max(0, pc - 1)]
        width = (4, 8, 4, 16)[pc]
        base = 0 if space is not Space.GLOBAL else BASE
        lanes = np.flatnonzero(rng.integers(0, 4, 32))
        places = base + width * rng.integers(0, 256 // width * 4, 32) * (1 + seed % 2)
        block = int(rng.integers(0, 30))
        rows.append(
            Access(
                warp(addresses=places.tolist(), lanes=[0, *lanes.tolist()]),
                pc=pc,
                block=block,
                space=space,
            )
        )
    return hand_trace(
        path, rows, launch=launch(grid=(30, 1, 1), arrays=ARRAYS), instructions=table
    ).launches[0]


def test_two_sums_of_one_instruction_in_a_block_are_refused(tmp_path: Path) -> None:
    code = [instruction(0, "mov.u32"), instruction(1, "add.u32", predicate="%p1", text="add")]
    for name, pcs in (("once", [1]), ("twice", [1, 1])):
        with TraceWriter(tmp_path / f"{name}.cutrace") as trace, trace.launch(launch()) as writer:
            writer.instructions(instruction_table(code))
            writer.lanes_on(block=0, pc=pcs, lanes=5)
    (once,) = read_trace(tmp_path / "once.cutrace").launches
    assert one(once, "h200").lanes_on["lanes"].to_list() == [5]
    (twice,) = read_trace(tmp_path / "twice.cutrace").launches
    with pytest.raises(CutraceError, match="two rows of block 0 and instruction 1"):
        one(twice, "h200")


def test_each_device_asks_once_how_many_blocks_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp())], launch=launch(block=(1024, 1, 1)))
    fits: list[str] = []

    def count_call(device: Device, *more: Any) -> Occupancy:
        fits.append(device.key)
        return launch_occupancy(device, *more)

    monkeypatch.setattr(replay_module, "launch_occupancy", count_call)
    (ran,) = analyze(trace, device="h100").launches
    (refused,) = analyze(trace, device="8800gtx").launches
    assert (ran.refusal, refused.refusal) == ("", "cannot launch: 512 threads a block at most")
    assert fits == ["h100", "8800gtx"]

"""What if rows were longer, or an array began elsewhere: addresses move, and nothing else."""

import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hand_trace import Access, hand_trace, instruction, launch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warps import LANES, Warp, warp

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.models.replay.suppose import suppose
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import ACCESSES, Array, Resources, Space

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
Captured = pytest.CaptureFixture[str]
TILE = Array("tile", Space.SHARED, 0, 32 * 32 * 4)


def shared(path: Path, *lanes: Warp, arrays: tuple[Array, ...] = (TILE,)) -> Trace:
    """A block whose warp loads shared memory, each time at another line."""
    size = max(array.offset + array.bytes for array in arrays)
    made = launch(
        arrays=arrays, shared_static=size, resources=(Resources("sm_90", 16, size, 0, 0),)
    )
    table = [instruction(pc, "ld.shared.f32") for pc in range(len(lanes))]
    accesses = [Access(one, pc=n, step=n, space=Space.SHARED) for n, one in enumerate(lanes)]
    return hand_trace(
        path / f"{len([*path.iterdir()])}.cutrace", accesses, launch=made, instructions=table
    )


def column(row: int, of: int = 0) -> Warp:
    """Lane i takes the word `of` of row i; rows have `row` words."""
    return warp(stride=4 * row, base=4 * of)


def counted(trace: Trace, device: str = "h200", **options: object) -> LaunchProfile:
    """The only launch, counted."""
    (found,) = cutrace.analyze(trace, device, **options).launches  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(("device", "conflicts"), [("h200", 31), ("gtx580", 31), ("8800gtx", 30)])
def test_a_column_of_a_tile_meets_in_one_bank_and_in_none_with_a_word_of_padding(
    device: str, conflicts: int, tmp_path: Path
) -> None:
    # 32 lanes in one of 32 banks: 31 passes too many; twice 16 lanes in one of 16 banks: 2 * 15
    trace = shared(tmp_path, column(32))
    assert counted(trace, device).counters["shared_conflicts"] == conflicts
    assert counted(trace, device, pad={"tile": 1}).counters["shared_conflicts"] == 0
    # rows of 34 words: lanes i and i + 16 meet, 34 * 16 = 17 * 32
    assert counted(trace, "h200", pad={"tile": 2}).counters["shared_conflicts"] == 1
    # 32 + 32 words: as before
    assert counted(trace, "h200", pad={"tile": 32}).counters["shared_conflicts"] == 31


@pytest.mark.parametrize("device", ["8800gtx", "gtx280", "gtx580", "k20", "h200"])
def test_a_padded_tile_counts_as_the_kernel_that_really_has_it(device: str, tmp_path: Path) -> None:
    plain, padded = (
        record(GALLERY / "transpose" / f"transpose_{name}.cu", [], tmp_path / f"{name}.cutrace")
        for name in ("shared", "padded")
    )
    supposed = cutrace.analyze(plain, device, pad={"tile": 1}, as_if=True)
    real = cutrace.analyze(padded, device, as_if=True)
    conflicts = [launch.counters["shared_conflicts"] for launch in real.launches]
    assert conflicts != [
        p.counters["shared_conflicts"] for p in cutrace.analyze(plain, device, as_if=True).launches
    ]
    for one, other in zip(supposed.launches, real.launches, strict=True):
        assert one.counters == other.counters
        assert one.launch.shared_static == other.launch.shared_static


def test_rows_for_caches_keep_their_pattern_where_loops_are_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutrace.models.replay.histogram.counting.WORTH", 1 << 60)
    source = GALLERY / "transpose" / "transpose_shared.cu"
    trace = record(source, [], tmp_path / "t.cutrace")
    # patterns 1 and 2, those of the tile, are not used once it is padded: global ones are 0 and 3
    padded = cutrace.analyze(trace, "gtx580", pad={"tile": 1}, as_if=True).launches[0]
    moved = cutrace.analyze(trace, "gtx580", align={"tile": 512}, as_if=True).launches[0]
    hits = [launch.counters["l2_write_hits"] for launch in (padded, moved)]
    # of the 64 bytes that a half-warp stores the first of two sectors misses: 1024 / 2
    assert hits == [512, 512]


def test_rows_that_one_pads_are_said_with_the_memory_that_they_take(tmp_path: Path) -> None:
    said = counted(shared(tmp_path, column(32)), pad={"tile": 1}).remarks
    assert said[:2] == (
        "what-if: rows of `tile` padded from 128 to 132 bytes",
        "what-if: 128 bytes more of shared memory a block",
    )


def test_more_shared_memory_leaves_room_for_fewer_blocks(tmp_path: Path) -> None:
    tile = Array("tile", Space.SHARED, 0, 112 * 1024, 4, (896, 32))
    trace = shared(tmp_path, column(32), arrays=(tile,))
    # 227 KiB for blocks, of which each takes 1 KiB more: 2 * 113 fit; 2 * (113 + 112 / 32) do not
    assert "2 blocks fit" in counted(trace).remarks[-1]
    assert "1 block fits" in counted(trace, pad={"tile": 1}).remarks[-1]


def test_what_lies_behind_moves_up_and_keeps_its_alignment(tmp_path: Path) -> None:
    behind = Array("behind", Space.SHARED, TILE.bytes, 256)
    trace = shared(tmp_path, column(32), warp(base=TILE.bytes), arrays=(TILE, behind))
    moved = suppose(trace, {"tile": 1}).launches[0]
    assert moved.launch.arrays[1].offset == 4096 + 32 * 4
    rows = moved.accesses().to_pylist()
    assert rows[0]["addresses"] == [132 * n for n in range(LANES)]
    assert rows[1]["addresses"] == [4096 + 128 + 4 * n for n in range(LANES)]
    # rows of 24 words, of 1024: 43 are begun, 172 bytes, rounded up to 176
    odd = suppose(trace, {"tile": "24+1"}).launches[0]
    assert odd.launch.arrays[1].offset == 4096 + -(-43 * 4 // 16) * 16


def test_a_misaligned_base_aligned_is_the_aligned_array(tmp_path: Path) -> None:
    def at(offset: int) -> Trace:
        array = Array("in", Space.GLOBAL, offset, 4096, 4, (1024,))
        accesses = [Access(warp(base=offset + 128 * n), step=n) for n in range(4)]
        made = launch(arrays=(array,))
        return hand_trace(tmp_path / f"{offset}.cutrace", accesses, launch=made)

    beside, aligned = at(0x1000_0004), at(0x1000_0080)
    for device in ("8800gtx", "gtx280", "gtx580", "h200"):
        assert counted(beside, device).counters != counted(aligned, device).counters
        supposed = counted(beside, device, align={"in": 128})
        assert supposed.counters == counted(aligned, device).counters
    # each warp's 128 bytes reach over 5 sectors, or fill 4
    name = "global_load_transactions"
    assert counted(beside).counters[name] == 4 * 5
    assert counted(beside, align={"in": 32}).counters[name] == 4 * 4


def test_an_array_may_begin_beside_a_boundary_so_that_a_later_element_does_not(
    tmp_path: Path,
) -> None:
    trace = record(GALLERY / "shifted_copy/offset_copy.cu", [], tmp_path / "o.cutrace")
    plain, shifted = (
        [launch.counters["global_load_transactions"] for launch in found.launches]
        for found in (
            cutrace.analyze(trace, "h200"),
            cutrace.analyze(trace, "h200", align={"in": "128+124"}),
        )
    )
    # 512 warps; `in[i]` and `in[i + 1]` change places: 4 sectors, and 5
    assert (plain[:2], shifted[:2]) == ([512 * 4, 512 * 5], [512 * 5, 512 * 4])


def test_rows_of_global_memory_get_a_pitch(tmp_path: Path) -> None:
    array = Array("image", Space.GLOBAL, 0x1000_0000, 8 * 400, 4, (8, 100))
    accesses = [Access(warp(base=0x1000_0000 + 400 * row), step=row) for row in range(8)]
    trace = hand_trace(tmp_path / "k.cutrace", accesses, launch=launch(arrays=(array,)))
    # 400 = 12.5 sectors: every other row begins 16 bytes beside one
    assert counted(trace).counters["global_load_transactions"] == 4 * 4 + 4 * 5
    padded = suppose(trace, {"image": 28})  # 400 + 28 * 4 = 512
    assert counted(padded).counters["global_load_transactions"] == 8 * 4
    assert padded.launches[0].launch.arrays[0].pitch == 512
    assert counted(trace, pad={"image": "100+4"}).counters["global_load_transactions"] == 8 * 4


def test_a_length_that_the_user_gives_is_taken_before_any_that_the_trace_has(
    tmp_path: Path,
) -> None:
    # rows of 16 words and one more: lane i goes to word 32 i + 2 i, so that i and i + 16 meet
    trace = shared(tmp_path, column(32))
    assert counted(trace, pad={"tile": "16+1"}).counters["shared_conflicts"] == 1


def test_rows_are_those_of_the_launch_where_each_has_its_own(tmp_path: Path) -> None:
    trace = read_trace(
        record(GALLERY / "transpose/transpose_shared.cu", [], tmp_path / "t.cutrace")
    )
    told = [one.what_if[0] for one in suppose(trace, {"tile": 1}).launches]
    assert [text.partition("padded ")[2] for text in told] == [
        "from 64 to 68 bytes",
        "from 128 to 132 bytes",
        "from 128 to 132 bytes",
    ]


@pytest.mark.parametrize(
    ("pad", "align", "message"),
    [
        ({"tiel": 1}, {}, "no array `tiel` to change; nearest: tile"),
        ({"tile": 0}, {}, "pad tile=0: expected 1 or more"),
        ({"tile": "one"}, {}, "pad tile=one: expected N or ROW+N, elements"),
        ({"tile": "1+2+3"}, {}, "expected N or ROW+N"),
        ({}, {"tile": 24}, "align tile=24: expected a power of two"),
        ({}, {"tile": "16+16"}, "expected less than 16 bytes beyond"),
        ({}, {"tile": "4+2"}, "accessed 4 bytes at a time, and must stay aligned"),
    ],
)
def test_what_makes_no_sense_is_refused(
    pad: dict[str, str | int], align: dict[str, str | int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CutraceError, match=re.escape(message)):
        suppose(shared(tmp_path, column(32)), pad, align)


def test_rows_that_nothing_tells_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"\(no stride between lanes\).*--pad tile=ROW\+1"):
        suppose(shared(tmp_path, warp(base=0)), {"tile": 1})
    mixed = (column(8), column(16))
    with pytest.raises(CutraceError, match=r"\(strides of 32, 64 bytes between lanes\)"):
        suppose(shared(tmp_path, *mixed), {"tile": 1})


def test_wide_accesses_must_stay_aligned(tmp_path: Path) -> None:
    table = [instruction(0, "ld.shared.v4.f32", bytes=16)]
    made = launch(arrays=(TILE,), shared_static=TILE.bytes)
    lanes = [Access(warp(stride=128, base=0), space=Space.SHARED)]
    trace = hand_trace(tmp_path / "k.cutrace", lanes, launch=made, instructions=table)
    with pytest.raises(CutraceError, match=r"16 bytes at a time.*pad by a multiple of 4"):
        suppose(trace, {"tile": 1})
    assert suppose(trace, {"tile": 4}).launches[0].accesses()["addresses"][0][1].as_py() == 144


def test_arrays_that_share_memory_cannot_move_alone(tmp_path: Path) -> None:
    same = Array("other", Space.SHARED, 2048, 64)
    trace = shared(tmp_path, column(32), arrays=(TILE, same))
    with pytest.raises(CutraceError, match="share memory"):
        suppose(trace, {"tile": "32+1"})


ARRAYS = (
    Array("a", Space.GLOBAL, 0x1000_0000, 1200, 4, (3, 100)),
    Array("b", Space.GLOBAL, 0x1000_0600, 512, 4, (128,)),
    Array("c", Space.GLOBAL, 0x1000_0800, 256, 4, (64,)),
)
WORDS = [a.offset + 4 * n for a in ARRAYS for n in range(a.bytes // 4)]
WISHES = st.fixed_dictionaries(
    {}, optional={"a": st.integers(1, 9), "b": st.sampled_from(["7+3", "128+1"])}
)
BASES = st.fixed_dictionaries(
    {}, optional={"a": st.sampled_from(["64+4", 512]), "c": st.sampled_from([1024, "128+8"])}
)


def where(address: int, pad: dict[str, object], align: dict[str, object]) -> int:
    """Where a word goes, worked out array by array."""
    ends = [0]
    for array in ARRAYS:
        row, added = 100, 0
        if array.name in pad:
            first, _, second = str(pad[array.name]).partition("+")
            row, added = (int(first), int(second)) if second else (100, int(first))
        start = array.offset + ends[-1]
        if array.name in align:
            bytes_, _, beyond = str(align[array.name]).partition("+")
            while start % int(bytes_) != int(beyond or 0):
                start += 4
        if 0 <= address - array.offset < array.bytes:
            word = (address - array.offset) // 4
            return start + 4 * (word + word // row * added)
        rows = -(-array.bytes // (4 * row))
        over = start + array.bytes + 4 * rows * added - (array.offset + array.bytes) - ends[-1]
        ends.append(ends[-1] + -(-over // 256) * 256)
    raise AssertionError(address)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from(WORDS)), min_size=LANES, max_size=LANES)
        .filter(any)
        .map(tuple),
        min_size=1,
        max_size=4,
    ),
    pad=WISHES,
    align=BASES,
)
def test_every_lane_goes_where_its_own_array_takes_it(
    rows: list[tuple[int | None, ...]],
    pad: dict[str, str | int],
    align: dict[str, str | int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("moved")
    accesses = [Access(Warp(lanes), step=n) for n, lanes in enumerate(rows)]
    accesses += [Access(warp(base=a.offset, lanes=[0]), step=9) for a in ARRAYS]
    trace = hand_trace(folder / "k.cutrace", accesses, launch=launch(arrays=ARRAYS))
    found = suppose(trace, pad, align).launches[0].accesses().to_pylist()
    for row, lanes in zip(found, rows, strict=False):
        expected = [None if a is None else where(a, dict(pad), dict(align)) for a in lanes]
        assert row["addresses"] == expected


def test_lanes_below_the_base_stay_in_their_array(tmp_path: Path) -> None:
    """Lane 0 at element 100, row 1 of `a`, goes up by the pad of 4 bytes; lane 1, row 0, stays."""
    start = ARRAYS[0].offset
    access = Access(Warp((start + 400, start) + (None,) * 30))
    trace = hand_trace(tmp_path / "k.cutrace", [access], launch=launch(arrays=ARRAYS))
    (row,) = suppose(trace, {"a": 1}).launches[0].accesses().to_pylist()
    assert row["addresses"][:2] == [start + 404, start]


def test_the_trace_itself_and_all_other_columns_stay_as_they_are(tmp_path: Path) -> None:
    trace = shared(tmp_path, column(32), column(32, 5))
    before = trace.launches[0].accesses()
    moved = suppose(trace, {"tile": 1}).launches[0]
    assert trace.launches[0].accesses() == before
    for name in ("block", "warp", "step", "part", "pc", "space", "active"):
        assert moved.accesses()[name] == before[name]
    assert {batch.schema for batch in moved.access_batches()} == {ACCESSES}
    masks, offsets = moved.patterns()
    assert [str(masks.dtype), str(offsets.dtype)] == ["uint32", "int32"]
    assert isinstance(moved.instructions(), pa.Table)


def test_every_verb_that_replays_takes_them(tmp_path: Path, capsys: Captured) -> None:
    trace = shared(tmp_path, column(32))
    name = str(trace.path)
    asked = ["-d", "h200", "--pad", "tile=1"]
    assert run(["analyze", name, *asked, "--counters", "shared_conflicts"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"shared_conflicts +0\n", out)
    assert "-d h200 --pad tile=1 --by line" in out
    assert run(["analyze", name, *asked, "--advice"]) == 0
    assert "nothing to advise" in capsys.readouterr().out
    assert run(["why", name, "k.cu:1", *asked]) == 0
    assert "no bank conflict: 1 wavefront" in capsys.readouterr().out
    assert run(["occupancy", name, *asked, "--no-curves"]) == 0
    assert run(["analyze", name, "--pad", "tile"]) == 2
    assert "--pad tile: expected ARRAY=[ROW+]N" in capsys.readouterr().err


def test_steps_of_a_pattern_are_its_rows_and_no_more(tmp_path: Path) -> None:
    # 16 x 2 threads of a tile 16 words wide: 30 steps of a row, and one back to the first
    lanes = warp(addresses=[64 * (n % 16) + 4 * (n // 16) for n in range(LANES)])
    falls = [b - a for a, b in pairwise(a for a in lanes.addresses if a is not None)]
    assert (falls.count(64), sum(step < 0 for step in falls)) == (30, 1)
    tile = Array("tile", Space.SHARED, 0, 16 * 16 * 4)
    moved = suppose(shared(tmp_path, lanes, arrays=(tile,)), {"tile": 1}).launches[0]
    assert moved.accesses()["addresses"][0][1].as_py() == 68

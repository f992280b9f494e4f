"""Advice: every rule on a kernel that has the fault, and silent on its twin that has not."""

import csv
import json
from importlib.resources import files
from io import StringIO
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch
from warps import FULL, Warp, warp

from cutrace.analyzer.advice.advise import LaunchFindings, advice_document, advise, rule_names
from cutrace.analyzer.evidence.evidence import Finding
from cutrace.analyzer.profile import analyze, count
from cutrace.analyzer.report import render
from cutrace.analyzer.report.view import View
from cutrace.commands._main import run
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import Resources, Space

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
THREE = ("8800gtx", "gtx580", "h200")
Captured = pytest.CaptureFixture[str]


def shown(advice: LaunchFindings, width: int | None = None) -> str:
    """What `advise` prints."""
    return render(advice_document(advice, View(width=width, last="x")), "table")


def found(trace: Trace, device: str = "h200") -> list[Finding]:
    """What is found in the last launch on one device."""
    return advise(trace, analyze(trace, device))[-1][1]


def rules(trace: Trace, device: str = "h200") -> set[str]:
    return {finding.rule for finding in found(trace, device)}


def one(path: Path, lanes: Warp, mnemonic: str, space: Space = Space.GLOBAL) -> Trace:
    """A trace with one access of 4 bytes a lane."""
    folder = path / f"{len([*path.iterdir()])}.cutrace"
    return hand_trace(folder, [Access(lanes, space=space)], instructions=[instruction(0, mnemonic)])


def gallery(tmp_path: Path, source: str) -> Trace:
    """A source of the gallery, recorded."""
    return read_trace(record(GALLERY / source, [], tmp_path / f"{Path(source).stem}.cutrace"))


@pytest.mark.parametrize("device", THREE)
def test_strided_stores_are_uncoalesced_and_rows_are_not(device: str, tmp_path: Path) -> None:
    (bad,) = found(one(tmp_path, warp(stride=64), "st.global.f32"), device)
    assert (bad.rule, bad.place, bad.share) == ("uncoalesced", "k.cu:1", 1)
    assert "(stride 64 bytes)" in bad.evidence
    assert found(one(tmp_path, warp(), "st.global.f32"), device) == []


def test_one_address_for_all_lanes_is_not_uncoalesced(tmp_path: Path) -> None:
    lanes = warp(addresses=[0x1000_0000] * 32)
    for device in ("gtx280", "gtx580", "h200"):
        assert rules(one(tmp_path, lanes, "ld.global.f32"), device) == set()


def test_one_address_for_each_half_warp_is_uncoalesced_on_1_0_only(tmp_path: Path) -> None:
    lanes = warp(addresses=[0x1000_0000 + 512 * (lane // 16) for lane in range(32)])
    trace = one(tmp_path, lanes, "ld.global.f32")
    told = {device: rules(trace, device) for device in ("8800gtx", "gtx280", "gtx580", "h200")}
    assert told == {"8800gtx": {"uncoalesced"}, "gtx280": set(), "gtx580": set(), "h200": set()}


def test_a_misaligned_row_is_told_apart_from_lanes_that_lie_apart(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(base=0x1000_0004), "ld.global.f32")
    (bad,) = found(trace)
    # 5 sectors for 4
    assert (bad.rule, bad.what) == (
        "misaligned",
        "misaligned loads: 5 transactions, 4 needed",
    )
    assert rules(trace, "8800gtx") == {"misaligned"}


@pytest.mark.parametrize("device", THREE)
def test_a_column_of_a_tile_meets_in_one_bank_until_rows_are_a_word_longer(
    device: str, tmp_path: Path
) -> None:
    (bad,) = found(one(tmp_path, warp(stride=128, base=0), "ld.shared.f32", Space.SHARED), device)
    assert bad.rule == "bank_conflicts"
    best = 2 if device == "8800gtx" else 1  # half-warps
    assert bad.change == (
        f"make rows of 128 bytes one word longer: the same access then takes {best} instead of 32"
        " wavefronts (tried)"
    )
    good = one(tmp_path, warp(stride=132, base=0), "ld.shared.f32", Space.SHARED)
    assert found(good, device) == []


@pytest.mark.parametrize("device", THREE)
def test_different_constants_are_told_and_one_for_all_is_not(device: str, tmp_path: Path) -> None:
    assert rules(one(tmp_path, warp(base=0), "ld.const.f32", Space.CONST), device) == {
        "divergent_constant"
    }
    same = one(tmp_path, warp(addresses=[4] * 32), "ld.const.f32", Space.CONST)
    assert rules(same, device) == set()


def branching(path: Path, taken: int, active: int = FULL) -> Trace:
    """A warp four times at a branch that these lanes take, each side to a block of its own."""
    table = [instruction(0, "bra", predicate="%p1", bytes=0)]
    table += [instruction(pc, "add", space="", bytes=0, block=pc) for pc in (1, 2)]
    table += [instruction(3, "ret", block=3)]
    targets = 2 if taken not in (0, active) else 1
    sides = [(1, taken, 0, 0, 1), (2, active & ~taken, 0, 0, 1)]
    entries = [(0, active, taken, targets, 1), *(side for side in sides if side[1])] * 4
    entries += [(3, active, 0, 0, 1)]
    folder = path / f"{len([*path.iterdir()])}.cutrace"
    return hand_trace(folder, instructions=table, paths=[entries], control=[(0, 0, 0, 0)])


@pytest.mark.parametrize(
    ("taken", "period"), [(0xAAAAAAAA, 2), (0x11111111, 4), (0x00FF00FF, 16), (0x0F0F0F0F, 8)]
)
def test_a_branch_by_the_threads_number_is_told(taken: int, period: int, tmp_path: Path) -> None:
    (bad,) = found(branching(tmp_path, taken))
    assert (bad.rule, bad.place) == ("divergence", "k.cu:1")
    assert bad.what == f"4 of 4 branches split their warp, by a pattern of {period} lanes"


def test_the_edge_of_a_blocks_rows_repeats_with_them_and_is_left_alone(tmp_path: Path) -> None:
    def in_rows_of(width: int, taken: int) -> list[Finding]:
        made = launch(block=(width, 64 // width, 1))
        table = [instruction(0, "bra", predicate="%p1", bytes=0), instruction(1, "ret", block=1)]
        paths = [[(0, FULL, taken, 2, 1), (1, FULL, 0, 0, 1)]]
        control = [(0, 0, 0, 0), (0, 1, 0, 0)]
        folder = tmp_path / f"{width}-{taken}.cutrace"
        return found(
            hand_trace(folder, launch=made, instructions=table, paths=paths, control=control)
        )

    assert in_rows_of(16, 0x0FFF0FFF) == in_rows_of(16, 0xFFF0FFF0) == []
    assert in_rows_of(8, 0x03030303) == []
    assert [bad.rule for bad in in_rows_of(16, 0x55555555)] == ["divergence"]
    assert [bad.rule for bad in in_rows_of(64, 0x0FFF0FFF)] == ["divergence"]


@pytest.mark.parametrize(("taken", "active"), [(0x000000FF, FULL), (FULL, FULL), (0x5, 0xF)])
def test_the_edge_of_the_data_and_whole_warps_are_left_alone(
    taken: int, active: int, tmp_path: Path
) -> None:
    assert found(branching(tmp_path, taken, active)) == []


def test_few_warps_for_want_of_registers(tmp_path: Path) -> None:
    def with_registers(count: int, blocks: int = 4096) -> Trace:
        own = (Resources("sm_90", count, 0, 0, 0),)
        made = launch(grid=(blocks, 1, 1), block=(256, 1, 1), resources=own)
        folder = tmp_path / f"{count} {blocks}.cutrace"
        return hand_trace(folder, launch=made, instructions=[instruction(0)])

    # 4096 registers a warp: 4 a partition, 16 of 64 warps; 40: 48 of 64
    (bad,) = found(with_registers(128))
    assert (bad.rule, bad.what) == ("few_registers", "registers leave room for 16 of 64 warps")
    # of 65,536 registers, three blocks of 256 threads: 21,845 each, 80 a thread in steps of 8
    assert "; with 80 an SM holds a block more;" in bad.change
    assert found(with_registers(40)) == []
    assert found(with_registers(128, blocks=2 * 132)) == []  # all fit at once as it is


def test_few_warps_for_want_of_shared_memory(tmp_path: Path) -> None:
    def with_shared(size: int, blocks: int = 4096) -> Trace:
        made = launch(grid=(blocks, 1, 1), block=(256, 1, 1), shared_static=size)
        folder = tmp_path / f"{size} {blocks}.cutrace"
        return hand_trace(folder, launch=made, instructions=[instruction(0)])

    # of 228 KiB, each block takes 48 and one more: 4 blocks of 8 warps
    (bad,) = found(with_shared(48 << 10))
    assert (bad.rule, bad.what) == ("much_shared", "shared memory leaves room for 32 of 64 warps")
    # five blocks: 46,694 bytes each, of which the driver takes 1 KiB; in steps of 128
    assert "(with 45,568 an SM holds a block more)" in bad.change
    assert found(with_shared(20 << 10)) == []
    assert found(with_shared(48 << 10, blocks=4 * 132)) == []


@pytest.mark.parametrize(
    ("grid", "block", "threads"),
    [
        ((256, 1, 1), (32, 32, 1), 512),  # 768 threads would need tiles of 32 x 24
        ((1000, 1, 1), (1024, 1, 1), 512),  # 1000 x 1024 threads are no multiple of 768
        ((1000, 1, 1), (32, 27, 1), 288),  # a part of 864: 432 are no whole warps
    ],
)
def test_a_block_size_that_is_advised_divides_the_work(
    tmp_path: Path, grid: tuple[int, int, int], block: tuple[int, int, int], threads: int
) -> None:
    made = launch(grid=grid, block=block)
    trace = hand_trace(tmp_path / "k.cutrace", launch=made, instructions=[instruction(0)])
    (bad,) = found(trace, "rtx4090")  # 48 warps: one block of 32 or 27
    assert (bad.rule, bad.change.partition(":")[0]) == (
        "odd_blocks",
        f"launch blocks of {threads} threads",
    )


@pytest.mark.parametrize(
    ("load", "store", "advice"),
    [
        (
            warp(stride=4096),
            warp(stride=4096),
            "exchange the indices, or pass tiles through shared",
        ),
        (warp(stride=4), warp(stride=4096), "(exchanged indices would scatter the loads instead)"),
        (warp(stride=4096), warp(stride=4), "(exchanged indices would scatter the stores instead)"),
        (warp(addresses=[n * n * 772 for n in range(32)]), warp(stride=4), "sort what they look"),
        (warp(stride=4), warp(addresses=[n * n * 772 for n in range(32)]), "sort what they store"),
    ],
)
def test_indices_are_to_be_exchanged_only_where_that_helps(
    tmp_path: Path, load: Warp, store: Warp, advice: str
) -> None:
    table = [instruction(0, "ld.global.f32"), instruction(1, "st.global.f32")]
    accesses = [Access(load, pc=0, step=0), Access(store, pc=1, step=1)]
    changes = [
        each.change
        for each in found(hand_trace(tmp_path / "k.cutrace", accesses, instructions=table))
    ]
    assert changes
    assert all(advice in change for change in changes)


def test_padding_lanes_of_the_last_warp(tmp_path: Path) -> None:
    def with_threads(count: int) -> Trace:
        made = launch(block=(count, 1, 1))
        return hand_trace(tmp_path / f"{count}.cutrace", launch=made, instructions=[instruction(0)])

    (bad,) = found(with_threads(100))
    assert (bad.rule, bad.what) == ("padding_lanes", "28 of 128 lanes of a block have no thread")
    assert found(with_threads(128)) == []
    assert found(with_threads(1000)) == []  # 24 of 1024
    assert found(with_threads(6)) == []  # one block: there is no more to do


def test_blocks_of_less_than_a_warp_are_idle_where_there_are_several(tmp_path: Path) -> None:
    made = launch(grid=(9, 1, 1), block=(6, 1, 1))
    trace = hand_trace(tmp_path / "k.cutrace", launch=made, instructions=[instruction(0)])
    (bad,) = found(trace)
    assert (bad.what, bad.evidence) == (
        "26 of 32 lanes of a block have no thread",
        "6 threads a block: its only warp has 6",
    )


def test_an_array_in_local_memory(tmp_path: Path) -> None:
    lanes = warp(addresses=[8 * (lane % 3) for lane in range(32)])
    assert rules(one(tmp_path, lanes, "st.local.f32", Space.LOCAL)) == {"local_array"}
    # each instruction goes to one place: what is passed to printf, not an array
    lanes = warp(addresses=[8] * 32)
    assert rules(one(tmp_path, lanes, "st.local.f32", Space.LOCAL)) == set()


def test_one_place_in_every_round_is_no_array_and_another_in_each_is(tmp_path: Path) -> None:
    def rounds(*places: int) -> set[str]:
        accesses = [
            Access(warp(addresses=[place] * 32), step=n, space=Space.LOCAL)
            for n, place in enumerate(places)
        ]
        folder = tmp_path / f"{'-'.join(map(str, places))}.cutrace"
        table = [instruction(0, "ld.local.f32")]
        return rules(hand_trace(folder, accesses, instructions=table))

    assert rounds(8, 8, 8) == set()
    assert rounds(8, 12, 8) == {"local_array"}


@pytest.mark.parametrize("mnemonic", ["atom.global.add.u32", "red.shared.max.u32"])
def test_lanes_on_one_address_contend_until_there_are_few(mnemonic: str, tmp_path: Path) -> None:
    space = Space.GLOBAL if "global" in mnemonic else Space.SHARED
    start = 0x1000_0000 if space is Space.GLOBAL else 0

    def among(places: int) -> set[str]:
        own = [start + 4 * (lane % places) for lane in range(32)]
        # the address comes from a thread's number: the assembler cannot combine
        table = [instruction(0, "mov.u32", text="mov.u32 %rd1, %tid.x;", bytes=0)]
        table += [instruction(1, mnemonic, text=f"{mnemonic} %r1, [%rd1], %r2;")]
        folder = tmp_path / f"{places}.cutrace"
        accesses = [Access(warp(addresses=own), pc=1, space=space)]
        return rules(hand_trace(folder, accesses, instructions=table))

    assert among(1) == {"contention"}
    assert among(8) == {"contention"}  # 4 lanes each
    assert among(16) == set()


def test_a_gather_from_near_places_goes_through_a_texture_where_order_counts(
    tmp_path: Path,
) -> None:
    # sixteen words out of order: 16 transactions of 32 bytes, or 2 sectors that a cache keeps
    lanes = warp(addresses=[0x1000_0000 + 64 * (n // 16) + n * 7 % 16 * 4 for n in range(32)])
    trace = one(tmp_path, lanes, "ld.global.f32")
    (bad,) = found(trace, "8800gtx")
    assert (bad.rule, bad.proof) == (
        "texture",
        "the same reads through a texture and its cache: from 1024 to 128 bytes",
    )
    assert rules(trace, "gtx580") == rules(trace, "h200") == set()


def test_an_l1_that_loses_its_lines_is_given_more_room_where_that_helps(tmp_path: Path) -> None:
    source = """
// cutrace: again<<<4, 256>>>(out:f32[4], in:f32[32768]=arange)
__global__ void again(float *out, const float *in)
{
    __shared__ float keep[256];
    keep[threadIdx.x] = 0;
    for (int pass = 0; pass < 12; pass++) {
        for (int i = threadIdx.x; i < 8192; i += 256)
            keep[threadIdx.x] += in[blockIdx.x * 8192 + i];
        __syncthreads();
    }
    if (keep[threadIdx.x] == 7) out[blockIdx.x] = 1;
}
"""
    (tmp_path / "k.cu").write_text(source)
    trace = read_trace(record(tmp_path / "k.cu", [], tmp_path / "t.cutrace"))
    options = ReplayOptions(device="gtx580", set={"chip.sms": 4, "rates.l2_bytes": 1})
    ((launch, (finding, *_)),) = advise(trace, count(trace, options), options)
    # 32 KB for each block, in an L1 of 16: of 12 rounds over 256 lines the first alone is cold
    assert (finding.rule, launch.limited_by) == ("thrashing", "L2")
    assert "11,264 of 12,288 sectors" in finding.what
    assert "prefer_l1" in finding.change  # of 48 KB: one round is left
    assert launch.bounds[0].ns / (launch.bounds[0].ns - finding.gain) == pytest.approx(12, rel=0.02)


def test_every_rule_is_tested_above() -> None:
    assert rule_names() == (
        *("async_copy", "bank_conflicts", "contention", "divergence", "divergent_constant"),
        *("few_registers", "halo", "local_array", "misaligned", "much_shared", "narrow_access"),
        *("odd_blocks", "padding_lanes", "read_only", "register_tile", "repeated_address"),
        *("reuse", "small_blocks", "small_grid", "texture", "thrashing", "tiny_launches"),
        *("uncoalesced", "vector_loads"),
    )


def test_instructions_of_one_line_are_one_finding(tmp_path: Path) -> None:
    table = [instruction(n, "st.global.f32", line=7) for n in range(3)]
    accesses = [Access(warp(stride=64 << n), pc=n, step=n) for n in range(3)]
    (bad,) = found(hand_trace(tmp_path / "k.cutrace", accesses, instructions=table))
    assert (bad.place, bad.others, bad.share) == ("k.cu:7", 2, 1)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("transpose/transpose_naive.cu", {"uncoalesced"}),
        ("transpose/transpose_shared.cu", {"bank_conflicts"}),
        ("reduction/reduce1_divergent.cu", {"divergence"}),
        ("reduction/reduce2_strided.cu", {"bank_conflicts"}),
        ("reduction/reduce3_sequential.cu", set()),
        ("reduction/reduce7_many.cu", set()),
        ("divergence/by_thread.cu", {"divergence"}),
        ("constant_table/constant_table.cu", {"divergent_constant"}),
        ("local_array/local_array.cu", {"local_array"}),
        ("reverse_array/reverse_shared.cu", set()),
    ],
)
def test_faults_of_the_gallery_are_found_and_good_variants_are_left_alone(
    source: str, expected: set[str], tmp_path: Path
) -> None:
    trace = gallery(tmp_path, source)
    told = advise(trace, analyze(trace, "h200"))
    every = [finding for _, findings in told for finding in findings]
    assert {f.rule for f in every if f.share is None or f.share > 0.1} - {"small_grid"} == expected


def test_the_verb_prints_advice_and_what_to_type(tmp_path: Path, capsys: Captured) -> None:
    trace = one(tmp_path, warp(stride=64), "st.global.f32")
    assert run(["analyze", str(trace.path), "-d", "h200", "--advice"]) == 0
    said = capsys.readouterr().out
    joined = " ".join(said.split())
    assert joined.startswith(
        "h200 k<<<1, 32>>>()"
        " - k.cu:1: an uncoalesced store: 32 transactions, 4 needed"
        " (uncoalesced, 100 % of the launch's traffic)"
        " seen: 32 lanes touch 32 sectors (stride 64 bytes): 4 needed; of 1024 bytes moved 128"
    )
    assert f"(cutrace why {trace.path} -d h200 --access 0.0.0.0.0)" in joined
    narrow = shown(advise(trace, analyze(trace, "h200")), 60)
    assert max(map(len, narrow.splitlines())) <= 60


def test_what_is_true_of_several_lines_is_said_once(tmp_path: Path) -> None:
    table = [instruction(pc, "st.global.f32") for pc in (0, 1)]
    rows = [Access(warp(stride=64), pc, step=pc) for pc in (0, 1)]
    trace = hand_trace(tmp_path / "two.cutrace", rows, instructions=table)
    said = shown(advise(trace, analyze(trace, "h200")))
    assert [said.count(part) for part in ("- k.cu:1: ", "- k.cu:2: ")] == [1, 1]
    assert [said.count(part) for part in ("  seen: ", "  change: ")] == [1, 1]


def test_launches_that_are_the_same_again_are_told_once_with_their_number(tmp_path: Path) -> None:
    source = """
// cutrace: bad<<<1, 32>>>(out:f32[1024])
// cutrace: bad<<<1, 32>>>(out)
// cutrace: bad<<<1, 32>>>(more:f32[2048])
__global__ void bad(float *out) { out[threadIdx.x * 32] = 1; }
"""
    (tmp_path / "k.cu").write_text(source)
    trace = read_trace(record(tmp_path / "k.cu", [], tmp_path / "t.cutrace"))
    told = advise(trace, analyze(trace, "h200"))
    assert [f.access.partition(".")[0] for _, found in told for f in found] == ["0", "1", "2"]
    headings = [line for line in shown(told).splitlines() if "<<<" in line]
    assert headings == [
        "h200  bad<<<1, 32>>>(out)  (2 launches, the first is 0)",
        "h200  bad<<<1, 32>>>(out=more)",
    ]


def test_advice_for_programs_is_what_the_format_asks_for(tmp_path: Path, capsys: Captured) -> None:
    one(tmp_path, warp(stride=64), "st.global.f32")
    asked = ["analyze", str(tmp_path / "0.cutrace"), "-d", "h200", "--advice", "--format"]
    assert run([*asked, "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (launch_,) = document["launches"]
    assert (document["format"], launch_["device"]) == ("cutrace-advice-2", "h200")
    (finding,) = [f for f in launch_["findings"] if f["rule"] == "uncoalesced"]
    # 32 lanes 64 bytes apart touch a sector of 32 bytes each; 128 bytes fit into 4
    assert (finding["share"], "32 transactions, 4 needed" in finding["what"]) == (1, True)
    assert run([*asked, "csv"]) == 0
    rows = [*csv.DictReader(StringIO(capsys.readouterr().out))]
    assert [row["what"] for row in rows] == [f["what"] for f in launch_["findings"]]
    assert run([*asked, "md"]) == 0
    markdown = capsys.readouterr().out
    part = "(uncoalesced, 100 % of the launch's traffic)"
    assert f"- `k.cu:1`: {finding['what']} {part}\n" in markdown
    assert run([*asked, "yaml"]) == 2
    assert "no format 'yaml'" in capsys.readouterr().err

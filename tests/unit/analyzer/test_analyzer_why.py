"""`why`: the sentence, the picture and the identifier of the worst warp of a line."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from warps import Warp, warp

from cutrace.analyzer.report import render
from cutrace.analyzer.report.view import View
from cutrace.analyzer.why import svg
from cutrace.analyzer.why.explain import Explanation, explain
from cutrace.analyzer.why.search import Searcher
from cutrace.analyzer.why.why_report import why_document
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import Array, Space
from cutrace.traces.writer import TraceWriter

STORE = "st.global.f32"
THREE = ("8800gtx", "gtx580", "h200")
Captured = pytest.CaptureFixture[str]


def one(
    path: Path, lanes: Warp, mnemonic: str = STORE, space: Space = Space.GLOBAL, bytes: int = 4
) -> Trace:
    """A trace with one access on line 1 of `k.cu`."""
    table = [instruction(0, mnemonic, bytes=bytes)]
    return hand_trace(path / "k.cutrace", [Access(lanes, space=space)], instructions=table)


def shown(explanations: Sequence[Explanation], width: int | None = None, last: str = "") -> str:
    """What `why` prints."""
    return render(why_document(explanations, View(width=width, last=last)), "table")


def sentences(trace: Trace, devices: Sequence[str] = THREE) -> list[str]:
    return [found.sentence for found in explain(trace, "k.cu:1", ReplayOptions(devices))]


def explained(trace: Trace, device: str = "h200", where: str | None = "k.cu:1") -> Explanation:
    (found,) = explain(trace, where, ReplayOptions(device))
    return found


def test_a_column_of_a_matrix_costs_each_lane_a_transaction_of_its_own(tmp_path: Path) -> None:
    # 32 x 4 bytes: 2 segments of 64 for the half-warps, or 4 sectors of 32
    assert sentences(one(tmp_path, warp(stride=4096))) == [
        "32 lanes make 32 transactions of 32 bytes (stride 4096 bytes): 2 needed",
        "32 lanes touch 32 sectors (stride 4096 bytes): 4 needed",
        "32 lanes touch 32 sectors (stride 4096 bytes): 4 needed",
    ]


def test_a_load_through_l1_of_2_x_counts_lines(tmp_path: Path) -> None:
    found = explained(one(tmp_path, warp(stride=128), "ld.global.f32"), "gtx580")
    assert found.sentence == ("32 lanes touch 32 lines of 128 bytes (stride 128 bytes): 1 needed")
    assert found.reason == "of 4096 bytes moved 128 are used, 3.1 %"


def test_a_row_is_as_good_as_it_gets(tmp_path: Path) -> None:
    found = explained(one(tmp_path, warp()))
    assert found.sentence == "32 lanes touch 4 sectors (stride 4 bytes): as few as possible"
    assert found.reason == ""


def test_a_misaligned_half_warp_says_by_how_much(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(base=0x1000_0004))
    assert explained(trace, "8800gtx").reason == (
        "a half-warp begins 4 bytes past a multiple of 64; of 1024 bytes moved 128 are used, 12.5 %"
    )
    # 128 bytes from byte 4: sectors 0 to 4
    assert sentences(trace, ["h200"]) == ["32 lanes touch 5 sectors (stride 4 bytes): 4 needed"]


def test_swapped_lanes_name_the_first_out_of_place_on_1_0_only(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(addresses=[0x1000_0000 + 4 * (lane ^ 1) for lane in range(32)]))
    assert (
        "to be coalesced lane 1 must access word 1 of its half-warp's segment, but it accesses 8"
        " bytes before that" in (explained(trace, "8800gtx").reason)
    )
    assert explained(trace, "gtx280").sentence.endswith("as few as possible")


def test_two_bytes_a_lane_are_never_coalesced_on_1_0(tmp_path: Path) -> None:
    found = explained(one(tmp_path, warp(stride=2), "st.global.u16", bytes=2), "8800gtx")
    assert found.reason.startswith("2 bytes a lane are never coalesced, only 4, 8 or 16 are")


def test_a_stride_of_two_words_meets_in_every_second_bank(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(stride=8, base=0), "ld.shared.f32", Space.SHARED)
    # 16 banks for 16 lanes, or 32 for 32: half of them hold two words each
    assert sentences(trace) == [
        "lanes 0, 8 conflict in bank 0: 4 wavefronts in 2 requests of 16 lanes, 2 needed",
        "lanes 0, 16 conflict in bank 0: 2 wavefronts, 1 needed",
        "lanes 0, 16 conflict in bank 0: 2 wavefronts, 1 needed",
    ]


def test_several_shared_words_are_broadcast_one_a_pass_on_1_x(tmp_path: Path) -> None:
    lanes = warp(addresses=[4 * (lane // 4) for lane in range(32)])
    trace = one(tmp_path, lanes, "ld.shared.f32", Space.SHARED)
    # each half-warp wants 4 words, each for 4 lanes: a pass serves one word and a lane of the rest
    assert sentences(trace) == [
        "lanes share 4 words, and a wavefront broadcasts one: 8 wavefronts in 2 requests"
        " of 16 lanes, 2 needed",
        "no bank conflict: 1 wavefront, as few as possible",
        "no bank conflict: 1 wavefront, as few as possible",
    ]


def test_shared_words_in_banks_of_their_own_need_one_pass(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(stride=132, base=0), "ld.shared.f32", Space.SHARED)
    assert sentences(trace, ["h200"]) == ["no bank conflict: 1 wavefront, as few as possible"]


def test_atomics_of_all_lanes_on_one_word_are_served_one_after_the_other(tmp_path: Path) -> None:
    lanes = warp(addresses=[0] * 32)
    table = [instruction(0, "atom.shared.add.u32")]
    trace = hand_trace(
        tmp_path / "k.cutrace", [Access(lanes, space=Space.SHARED)], instructions=table
    )
    (group,) = explained(trace).groups
    assert [piece.lanes for piece in group.crowded] == [(lane,) for lane in range(32)]


def test_constants_are_read_one_after_the_other(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(base=0), "ld.const.f32", Space.CONST)
    # every lane its own word: 32 passes on any device, and at best one a request
    assert sentences(trace) == [
        "32 lanes read 32 constants: 32 wavefronts, one after the other, in 2 half-warps; 2 needed",
        "32 lanes read 32 constants: 32 wavefronts, one after the other; 1 needed",
        "32 lanes read 32 constants: 32 wavefronts, one after the other; 1 needed",
    ]


def test_one_constant_for_all_lanes_is_one_pass(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(addresses=[64] * 32), "ld.const.f32", Space.CONST)
    assert sentences(trace, ["h200"]) == [
        "32 lanes read 1 constant: 1 wavefront; as few as possible"
    ]


def test_local_memory_is_drawn_interleaved(tmp_path: Path) -> None:
    trace = one(tmp_path, warp(addresses=[8] * 32), "st.local.f32", Space.LOCAL)
    (group,) = explained(trace).groups
    # word 2 of all lanes: bytes 256 to 383, 8 lanes a sector
    assert [(p.address, p.lanes) for p in group.pieces] == [
        (256 + 32 * n, tuple(range(8 * n, 8 * n + 8))) for n in range(4)
    ]


def test_the_pieces_of_an_access_cost_what_the_model_counts(tmp_path: Path) -> None:
    lanes = warp(addresses=[0x1000_0000 + 4 * (7 * lane * lane % 61) for lane in range(27)])
    for bytes_ in (4, 8, 16):
        folder = tmp_path / str(bytes_)
        folder.mkdir()
        aligned = Warp(tuple(a and a // bytes_ * bytes_ for a in lanes.addresses))
        trace = one(folder, aligned, bytes=bytes_)
        for device in ("8800gtx", "gtx280", "gtx580", "k20", "p100", "h200"):
            found = explained(trace, device)
            assert found.access is not None
            pieces = [piece for group in found.groups for piece in group.pieces]
            assert len(pieces) == found.access.cost, device
            assert {lane for piece in pieces for lane in piece.lanes} == set(range(27))


@pytest.mark.parametrize("device", ["8800gtx", "gtx580", "h200"])
@pytest.mark.parametrize("operation", ["exch.b32", "add.u32", "cas.b32", "min.s32"])
def test_colliding_atomics_have_as_many_pieces_as_transactions(
    device: str, operation: str, tmp_path: Path
) -> None:
    lanes = warp(addresses=[0x1000_0000 + 4 * (lane % 5) for lane in range(32)])
    found = explained(one(tmp_path, lanes, f"atom.global.{operation}"), device)
    assert found.access is not None
    pieces = [piece for group in found.groups for piece in group.pieces]
    assert len(pieces) == found.access.cost
    assert {lane for piece in pieces for lane in piece.lanes} == set(range(32))


def test_wide_loads_of_pairs_with_one_address_are_one_request_on_7_0_and_later(
    tmp_path: Path,
) -> None:
    lanes = warp(addresses=[8 * (lane // 2) for lane in range(32)])
    trace = one(tmp_path, lanes, "ld.shared.f64", Space.SHARED, 8)
    assert sentences(trace, ["h200"]) == ["no bank conflict: 1 wavefront, as few as possible"]
    assert sentences(trace, ["gtx980"]) == [
        "no bank conflict: 2 wavefronts in 2 requests of 16 lanes, as few as possible"
    ]


def two_lines(path: Path) -> Trace:
    """Line 1 has a good and a bad warp, line 2 another instruction, line 3 none."""
    accesses = [
        Access(warp(), warp=0, step=4),
        Access(warp(stride=64), block=5, warp=1, step=7),
        Access(warp(stride=64, base=0x1000_8000), block=6, warp=1, step=7),
        Access(warp(stride=8), pc=1, warp=1, step=9),
    ]
    table = [instruction(0), instruction(1), instruction(2, "add.f32", bytes=0)]
    shape = launch(grid=(4, 2, 1), block=(64, 1, 1))
    return hand_trace(path / "k.cutrace", accesses, launch=shape, instructions=table)


def test_the_worst_warp_is_taken_the_first_of_equals(tmp_path: Path) -> None:
    found = explained(two_lines(tmp_path))
    assert found.access is not None
    assert (found.access.identifier, found.block) == ("0.5.1.7.0", (1, 1, 0))
    assert explained(two_lines(tmp_path), where=None) == found


def test_a_launch_that_repeats_another_is_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    worst = Searcher.worst

    def note(searcher: Searcher, pcs: Any) -> Any:
        searched.append(searcher.trace.number)
        return worst(searcher, pcs)

    monkeypatch.setattr(Searcher, "worst", note)
    with TraceWriter(tmp_path / "k.cutrace") as trace:
        for stride in (4, 8, 4, 128, 8, 128):
            with trace.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    (found,) = explain(read_trace(tmp_path / "k.cutrace"), None, ReplayOptions("h200"))
    assert searched == [0, 1, 3]
    assert found.access is not None
    assert found.access.identifier == "3.0.0.0.0"


def test_an_identifier_brings_one_back_to_its_access(tmp_path: Path) -> None:
    (found,) = explain(two_lines(tmp_path), None, ReplayOptions("h200"), "0.6.1.7.0")
    assert found.access is not None
    assert found.access.addresses[0] == 0x1000_8000
    assert found.groups[0].pieces[0].address == 0x1000_8000


@pytest.mark.parametrize(
    ("where", "identifier", "message"),
    [
        ("k.cu:3", None, "k.cu:3: no access to memory on this line; nearest lines with one: 1, 2"),
        ("k.cu", None, "'k.cu': expected FILE:LINE"),
        ("kk.cu:1", None, "kk.cu: no such source in the trace; nearest: k.cu"),
        (None, "0.5.1.8.0", "no access 0.5.1.8.0 in"),
        (None, "3.5.1.8.0", "there is no launch 3: it has 1 launch, number 0"),
        (None, "0.5.1", "expected LAUNCH.BLOCK.WARP.STEP.PART"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(
    tmp_path: Path, where: str | None, identifier: str | None, message: str
) -> None:
    with pytest.raises(CutraceError, match=re.escape(message)):
        explain(two_lines(tmp_path), where, ReplayOptions("h200"), identifier)


def test_an_inlined_instruction_belongs_to_the_line_that_calls_too(tmp_path: Path) -> None:
    call = {"file": "k.cu", "line": 40, "column": 3}
    table = [instruction(0, inlined_at=[call])]
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp())], instructions=table)
    assert explained(trace, where="k.cu:40").sentence == explained(trace).sentence


def test_a_trace_without_lines_is_explained_without_one(tmp_path: Path) -> None:
    table = [instruction(0, file="", line=0)]
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp())], instructions=table)
    with pytest.raises(CutraceError, match="the trace knows no source lines"):
        explained(trace)
    assert explained(trace, where=None).sentence.startswith("32 lanes touch 4 sectors")


def test_a_device_that_refuses_the_launch_says_so(tmp_path: Path) -> None:
    shape = launch(block=(1024, 1, 1))
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp())], launch=shape)
    found = explain(trace, "k.cu:1", ReplayOptions(["8800gtx", "h200"]))
    assert [e.refusal for e in found] == ["cannot launch: 512 threads a block at most", ""]
    assert "8800gtx: cannot launch: 512 threads a block at most" in shown(found)


def test_the_picture_names_arrays_bytes_and_lanes(tmp_path: Path) -> None:
    lines = shown([explained(one(tmp_path, warp(stride=8)))], last="x").splitlines()
    assert lines == [
        "k.cu:1",
        "",
        "h200: 32 lanes touch 8 sectors (stride 8 bytes): 4 needed",
        "of 256 bytes moved 128 are used, 50 %",
        "block (0, 0, 0), warp 0 of k<<<1, 32>>>()",
        "access 0.0.0.0.0: st.global.f32 ...;",
        "",
        "address   bytes  # used . not  lanes",
        "data+0    32     #.#.#.#.      0 to 3",
        *(f"data+{32 * n:<4} 32     #.#.#.#.      {4 * n} to {4 * n + 3}" for n in range(1, 8)),
        "",
        "next: x",
    ]


@pytest.mark.parametrize("width", [60, 100, 200])
def test_no_width_cuts_anything(tmp_path: Path, width: int) -> None:
    lanes = warp(addresses=[0x1000_0000 + 4 * (lane * lane % 7) for lane in range(32)])
    found = [explained(one(tmp_path, lanes), device) for device in THREE]
    drawn = shown(found, width, "x")
    assert max(map(len, drawn.splitlines())) <= width
    assert drawn.split() == shown(found, None, "x").split()


def test_the_drawing_is_one_escaped_file_without_links(tmp_path: Path) -> None:
    arrays = (Array("<b>&", Space.SHARED, 0, 4096),)
    table = [instruction(0, "ld.shared.f32")]
    lanes = Access(warp(stride=8, base=0), space=Space.SHARED)
    trace = hand_trace(
        tmp_path / "k.cutrace", [lanes], launch=launch(arrays=arrays), instructions=table
    )
    drawn = svg.draw_together(explain(trace, "k.cu:1", ReplayOptions(THREE)))
    root = ElementTree.fromstring(drawn)
    name = "{http://www.w3.org/2000/svg}"
    # 32 lanes and their words, on each device; half of the words come second in their bank
    wires = root.findall(f"{name}path")
    assert len(wires) == 3 * 32
    assert sum(wire.get("class") == "wire late" for wire in wires) == 3 * 16
    assert drawn.count("http") == 1
    assert drawn == svg.draw_together(explain(trace, "k.cu:1", ReplayOptions(THREE)))


def test_the_verb_draws_a_recorded_kernel_and_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.cu").write_text(
        "// cutrace: t<<<1, (32, 2)>>>(out:f32[32,64], in:f32[64,32])\n"
        "__global__ void t(float *out, const float *in)\n"
        "{\n"
        "    out[threadIdx.x * 64 + threadIdx.y] = in[threadIdx.y * 32 + threadIdx.x];\n"
        "}\n"
    )
    assert run(["why", "t.cu", "t.cu:4", "-d", "h200", "--svg", "t.svg"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("t.cu:4  out[threadIdx.x * 64 + threadIdx.y] = in[")
    assert "h200: 32 lanes touch 32 sectors (stride 256 bytes): 4 needed\n" in out
    assert "also on this line:\n- global load: 4 transactions, 4 at best (--access 0." in out
    assert out.endswith("next: cutrace analyze t.cu -d h200 --by line\n")
    assert Path("t.svg").read_text().startswith("<svg ")
    assert run(["why", "t.cu", "t.cu:4", "-d", "h200", "--svg", "no/such.svg"]) == 2
    assert (
        capsys.readouterr().err
        == "cutrace: no/such.svg: cannot write it: No such file or directory\n"
    )


TRANSPOSE = """\
// cutrace: t<<<1, (16, 16)>>>(out:f32[16,1024], in:f32[1024,16])
__global__ void t(float *out, const float *in)
{
    out[threadIdx.x * 1024 + threadIdx.y] = in[threadIdx.y * 16 + threadIdx.x];
}
"""
STRIDED = """\
// cutrace: s<<<1, 32>>>(out:f32[32])
__global__ void s(float *out)
{
    __shared__ float tile[64];
    tile[2 * threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
"""
CONSTANT = """\
// cutrace: c<<<1, 32>>>(out:f32[32])
__constant__ float table[32];
__global__ void c(float *out)
{
    out[threadIdx.x] = table[threadIdx.x];
}
"""


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        (
            TRANSPOSE,
            4,
            # 16 lanes along x, then the next row of them one word further: a sector holds both;
            # on 1.0 each lane of a half-warp has a transaction of its own
            [
                "32 lanes make 32 transactions of 32 bytes (stride 4096 bytes in runs of 16 lanes):"
                " 2 needed",
                "32 lanes touch 16 sectors (stride 4096 bytes in runs of 16 lanes): 4 needed",
                "32 lanes touch 16 sectors (stride 4096 bytes in runs of 16 lanes): 4 needed",
            ],
        ),
        (
            STRIDED,
            5,
            # words 0 and 16 of a half-warp's 16 lie in bank 0 of 16; words 0 and 32 in 0 of 32
            [
                "lanes 0, 8 conflict in bank 0: 4 wavefronts in 2 requests of 16 lanes, 2 needed",
                "lanes 0, 16 conflict in bank 0: 2 wavefronts, 1 needed",
                "lanes 0, 16 conflict in bank 0: 2 wavefronts, 1 needed",
            ],
        ),
        (
            CONSTANT,
            5,
            [
                "32 lanes read 32 constants: 32 wavefronts, one after the other, in 2 half-warps;"
                " 2 needed",
                "32 lanes read 32 constants: 32 wavefronts, one after the other; 1 needed",
                "32 lanes read 32 constants: 32 wavefronts, one after the other; 1 needed",
            ],
        ),
    ],
)
def test_the_verb_says_the_right_sentence_on_every_era_and_takes_its_identifier_back(
    source: str,
    line: int,
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(source)
    assert run(["record", "k.cu", "-o", "k.cutrace"]) == 0
    capsys.readouterr()
    command = ["why", "k.cutrace", "-d", ",".join(THREE)]
    assert run([*command, f"k.cu:{line}"]) == 0
    shown = capsys.readouterr().out
    for device, sentence in zip(THREE, said, strict=True):
        assert f"\n{device}: {sentence}\n" in shown
    (identifier,) = set(re.findall(r"^access (\d+(?:\.\d+){4}):", shown, flags=re.M))
    assert run([*command, identifier]) == 0
    again = capsys.readouterr().out
    for device, sentence in zip(THREE, said, strict=True):
        assert f"\n{device}: {sentence}\n" in again
    assert run([*command, identifier, "--access", "0.9.9.9.0"]) == 2
    told = f"cutrace: two accesses: {identifier} and --access 0.9.9.9.0; give one\n"
    assert capsys.readouterr().err == told


def test_all_devices_draw_the_same_access(tmp_path: Path) -> None:
    """A load begins a word late, which 1.0 does not forgive; a store goes eight words apart."""
    table = [instruction(0, "ld.global.f32"), instruction(1, STORE, line=1)]
    rows = [Access(warp(base=0x1000_0004)), Access(warp(stride=8, lanes=range(16)), pc=1, step=1)]
    trace = hand_trace(tmp_path / "k.cutrace", rows, instructions=table)
    alone = {device: explained(trace, device).access for device in THREE}
    assert len({access.identifier for access in alone.values() if access}) == 2
    for devices in (THREE, THREE[::-1]):
        together = explain(trace, "k.cu:1", ReplayOptions(devices))
        drawn = {found.access.identifier for found in together if found.access}
        assert drawn == {access.identifier for access in [alone[devices[0]]] if access}
        for found in together:
            worst = alone[found.device]
            assert worst
            told = [*drawn, *found.others]
            assert any(worst.identifier in each for each in told), "what is worse is not lost"

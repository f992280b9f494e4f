"""The memory flow: which boxes a device has, and the bytes between them, on warps by hand."""

from pathlib import Path
from xml.etree import ElementTree

from hand_trace import Access, hand_trace, instruction, launch
from warps import BASE, warp

import cutrace
from cutrace.analyzer.counting.memory_flow import Flow, trace_flow
from cutrace.analyzer.html.flow_svg import draw_flow
from cutrace.analyzer.text.svg import count_bytes
from cutrace.models.replay.device.device import load_device
from cutrace.traces.schema import Space

LOAD, STORE, TILE, TABLE = 0, 1, 2, 3
CODE = [
    instruction(LOAD),
    instruction(STORE, "st.global.f32"),
    instruction(TILE, "ld.shared.f32"),
    instruction(TABLE, "ld.const.f32"),
]


def flow(path: Path, device: str, *accesses: Access) -> Flow:
    shape = launch(block=(96, 1, 1))
    trace = hand_trace(path / "k.cutrace", accesses, launch=shape, instructions=CODE)
    (profile,) = cutrace.analyze(trace, device).launches
    return trace_flow(profile.raw.counts, load_device(device))


def links(found: Flow) -> dict[tuple[str, str], tuple[int, int]]:
    return {(link.near, link.far): (link.loads, link.stores) for link in found.links}


ROWS = (
    Access(warp(), pc=LOAD, warp=0),
    Access(warp(), pc=LOAD, warp=1),
    Access(warp(base=BASE + 4096), pc=STORE, warp=1, step=1),
)


def test_what_l1_holds_does_not_come_from_l2_again(tmp_path: Path) -> None:
    # two warps load 128 bytes, the same; a store of 128 goes through to L2 and waits there
    found = flow(tmp_path, "h200", *ROWS)
    assert links(found) == {
        ("warps", "global"): (256, 128),
        ("global", "l1"): (256, 128),
        ("l1", "l2"): (128, 128),
        ("l2", "dram"): (128, 0),
    }
    boxes = {box.name: box for box in found.boxes}
    assert boxes["warps"].lines == ("3 requests",)
    assert boxes["global"].lines == ("3 requests", "12 transactions")
    # 4 sectors for each of two loads, and 4 of the store
    assert boxes["l1"].lines == ("50 % of reads hit", "0 % of writes hit")
    assert [box.column for box in found.boxes] == [0, 1, 2, 3, 4]


def test_a_device_without_caches_sends_everything_to_memory(tmp_path: Path) -> None:
    # two half-warps of 64 bytes each make 128
    assert links(flow(tmp_path, "8800gtx", *ROWS)) == {
        ("warps", "global"): (256, 128),
        ("global", "dram"): (256, 128),
    }


def test_global_memory_passes_by_an_l1_that_serves_local_memory_only(tmp_path: Path) -> None:
    assert links(flow(tmp_path, "k20", *ROWS)) == {
        ("warps", "global"): (256, 128),
        ("global", "l2"): (256, 128),
        ("l2", "dram"): (128, 0),
    }


def test_shared_memory_ends_in_the_sm_and_constants_have_caches_of_their_own(
    tmp_path: Path,
) -> None:
    found = flow(
        tmp_path,
        "h200",
        Access(warp(base=0, stride=8), pc=TILE, space=Space.SHARED),
        Access(warp(base=0, stride=0), pc=TABLE, step=1, space=Space.CONST),
    )
    seen = links(found)
    assert seen["warps", "shared"] == (128, 0)
    assert seen["warps", "const"] == (128, 0)
    assert not [link for link in found.links if link.near == "shared"]
    boxes = {box.name: box for box in found.boxes}
    # words 0 and 32 lie in bank 0
    assert boxes["shared"].lines == ("1 request", "2 passes", "1 needed")
    assert boxes["idc"].title == "Constant cache"


def test_a_kernel_that_accesses_nothing_has_warps_alone(tmp_path: Path) -> None:
    found = flow(tmp_path, "h200")
    assert [box.name for box in found.boxes] == ["warps"]
    assert found.links == ()
    assert "0 requests" in draw_flow(found, "nothing")


def test_arrows_carry_their_bytes_and_are_as_wide_as_their_root(tmp_path: Path) -> None:
    drawn = ElementTree.fromstring(draw_flow(flow(tmp_path, "h200", *ROWS), "a<b"))
    assert drawn.attrib["aria-label"] == "a<b"
    told: dict[tuple[str, str | None, str | None], list[float]] = {}
    for arrow in drawn.iter("g"):
        (title, way, _, words) = arrow
        told.setdefault((arrow.attrib["class"], title.text, words.text), []).append(
            float(way.attrib["stroke-width"])
        )
    assert set(told) == {
        ("load", "256 bytes loaded", "256 B"),
        ("load", "128 bytes loaded", "128 B"),
        ("store", "128 bytes stored", "128 B"),
    }
    # 12 for the most, 12 times the root of a half for half of it
    assert set(told["load", "256 bytes loaded", "256 B"]) == {12.0}
    assert set(told["store", "128 bytes stored", "128 B"]) == {8.5}


def test_bytes_are_told_with_three_digits() -> None:
    sizes = (0, 9999, 10_000, 294_912, 1_048_576, 1_023_000_000)
    assert [count_bytes(n) for n in sizes] == [
        *("0 B", "9999 B", "9.77 KiB", "288 KiB", "1 MiB", "976 MiB"),
    ]

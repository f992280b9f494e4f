"""Sizes: wherever bytes are asked for, a number or a text with a unit says them."""

from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.base.config import bytes_of, read_size
from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.interface.options import read_changes

KB48 = [48 << 10, "49152", "48K", "48k", "48 KB", "48KiB", "49152 B", "0.046875M"]


@pytest.mark.parametrize("size", KB48)
def test_one_size_is_said_in_many_ways(size: int | str) -> None:
    assert bytes_of(size, "size") == 48 << 10


@pytest.mark.parametrize("text", ["", "K", "-1", "10P", "0", "1e6", "1.5", "12 B K", "1,5K"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CutraceError, match=r"max_trace_size is .*: expected bytes, as in 64K"):
        bytes_of(text, "max_trace_size")


@pytest.mark.parametrize("text", ["sm_90", "9.0", "16", "sector", "GeForce GTX 280M"])
def test_a_text_without_a_unit_is_no_size(text: str) -> None:
    assert read_size(text) == text


@pytest.mark.parametrize("size", ["48M", "48 MiB", "48mb", "0.046875G"])
def test_devices_and_alignments_take_sizes(size: str) -> None:
    (l2,) = (each for each in load_device("h100", {"l2.bytes": size}).stages if each.name == "l2")
    assert l2.keys["bytes"] == 48 << 20
    assert read_changes({}, {"in": "4K+1K"}) == read_changes({}, {"in": "4096+1024"})


def test_occupancy_and_miss_ratios_take_sizes(tmp_path: Path) -> None:
    by_text, by_number = (
        cutrace.occupancy(device="h100", threads=64, shared=shared).frame()
        for shared in ("100K", 100 << 10)
    )
    assert by_text.equals(by_number)
    assert by_text["blocks"].to_list() == [2]  # of 228 KB, with 1 KB more for each block
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4), step=n) for n in range(9)])
    ratios = cutrace.miss_ratios(trace, "h100", "l2", sizes=["64K", 1 << 20]).frame()
    assert ratios["bytes"].to_list() == [64 << 10, 1 << 20]

"""Loops of atomics: who is done in which turn, and the rows that they make, by hand arithmetic."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_trace import Access, hand_trace, instruction
from warps import Warp, warp

import cutrace
from cutrace.models.replay.atomic_loops import spun_turns, swapped_turns
from cutrace.traces.schema import Space

LOADS = "smsp__sass_inst_executed_op_shared_ld.sum"
ATOMICS = "smsp__sass_inst_executed_op_shared_atom.sum"
LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
ATOMIC_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"
IDEAL = "memory_l1_wavefronts_shared_ideal"


def turns(lanes: dict[int, int], width: int = 4, swapped: bool = False) -> dict[int, int]:
    """The turn of each lane; `lanes` have the addresses of those that are active."""
    addresses, active = np.zeros((1, 32), np.int64), np.zeros((1, 32), np.bool_)
    for lane, address in lanes.items():
        addresses[0, lane], active[0, lane] = address, True
    found = swapped_turns(addresses, active) if swapped else spun_turns(addresses, active, width)
    assert (found[~active] == -1).all()
    return {lane: int(found[0, lane]) for lane in lanes}


def test_one_lane_of_a_bank_is_done_in_a_turn_the_lowest_first() -> None:
    assert turns({0: 0, 1: 4, 2: 0, 5: 128, 31: 4}) == {0: 0, 1: 0, 2: 1, 5: 2, 31: 1}


def test_of_8_bytes_each_half_warp_has_lanes_that_are_done() -> None:
    assert turns({0: 0, 1: 128, 16: 256, 17: 384}, 8) == {0: 0, 1: 1, 16: 0, 17: 1}


def test_of_8_bytes_a_lane_waits_whose_word_the_first_half_has_just_changed() -> None:
    assert turns({0: 0, 16: 0}, 8) == {0: 0, 16: 1}
    assert turns({0: 0, 1: 128, 2: 0, 16: 128, 17: 0}, 8) == {0: 0, 1: 1, 2: 2, 16: 0, 17: 1}
    assert turns({0: 0, 1: 0, 16: 0, 17: 128}, 8) == {0: 0, 1: 1, 16: 2, 17: 3}


def test_halves_of_a_word_are_swapped_one_after_another_whatever_their_bank() -> None:
    assert turns({0: 0, 1: 2, 2: 4, 3: 128, 4: 0}, swapped=True) == {0: 0, 1: 1, 2: 0, 3: 0, 4: 2}


def counters(
    path: Path, lanes: Warp, device: str = "h100", code: str = "assembled", **columns: Any
) -> dict[str, float | int | None]:
    """What is counted of one atomic that nobody reads."""
    atomic = instruction(0, "red.shared.add.f32") | {"collision": "spun"} | columns
    space = Space.GLOBAL if columns.get("space") == "global" else Space.SHARED
    trace = hand_trace(path, [Access(lanes, space=space)], instructions=[atomic])
    return dict(cutrace.analyze(trace, device, code=code).launches[0].counters)


def test_a_loop_loads_what_is_left_and_takes_two_wavefronts_in_each_turn(tmp_path: Path) -> None:
    """32 words of every other bank: turns of 32 and of 16 lanes, loads in two passes and in one."""
    found = counters(tmp_path / "t.cutrace", warp(stride=8, base=0))
    assert (found[LOADS], found[ATOMICS]) == (2, 2)
    assert (found[LOAD_WAVEFRONTS], found[ATOMIC_WAVEFRONTS]) == (2 + 1, 2 + 2)
    assert found[IDEAL] == 2 * (1 + 2)


def test_lanes_on_one_word_load_it_in_one_wavefront_each_turn(tmp_path: Path) -> None:
    found = counters(tmp_path / "t.cutrace", warp(stride=0, base=0, lanes=range(5)))
    assert (found[LOADS], found[LOAD_WAVEFRONTS]) == (5, 5)
    assert (found[ATOMICS], found[ATOMIC_WAVEFRONTS]) == (5, 10)


def test_doubles_take_four_wavefronts_while_both_half_warps_have_lanes(tmp_path: Path) -> None:
    """Lanes 0 and 1 on one word, lane 16 on another: then lane 1 is left."""
    lanes = warp(addresses=[0, 0, *[None] * 14, 8, *[None] * 15])
    found = counters(tmp_path / "t.cutrace", lanes, type="f64", bytes=8)
    assert (found[LOADS], found[ATOMICS], found[ATOMIC_WAVEFRONTS]) == (2, 2, 4 + 2)
    assert found[IDEAL] == 2 * (1 + 2)


def test_halves_load_their_words_once_and_swap_them(tmp_path: Path) -> None:
    """Four lanes on two words: two turns, of two lanes in each bank and of one."""
    lanes = warp(stride=2, base=2, lanes=range(1, 5))
    half: dict[str, Any] = {"collision": "swapped", "type": "f16", "bytes": 2}
    found = counters(tmp_path / "t.cutrace", lanes, **half)
    assert (found[LOADS], found[LOAD_WAVEFRONTS]) == (1, 1)
    assert (found[ATOMICS], found[ATOMIC_WAVEFRONTS]) == (2, 2 * 2 + 2 * 1)


def test_halves_in_global_memory_are_atomics_of_their_sector(tmp_path: Path) -> None:
    lanes = warp(stride=2, base=0x1000_0000, lanes=range(4))
    reach = 1 << Space.GLOBAL
    half: dict[str, Any] = {"collision": "swapped", "type": "f16", "bytes": 2, "space": "global"}
    half |= {"reads": reach, "writes": reach}
    found = counters(tmp_path / "t.cutrace", lanes, **half)
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 1
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 1
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"] == 2
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"] == 2 + 1
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"] == 0


@pytest.mark.parametrize(("device", "code"), [("gtx980", "assembled"), ("h100", "ptx")])
def test_without_the_assembler_an_atomic_is_one(tmp_path: Path, device: str, code: str) -> None:
    found = counters(tmp_path / "t.cutrace", warp(stride=0, base=0), device, code)
    assert found["shared_atomic_requests"] == 1
    assert found["shared_wavefronts"] == 32


def test_what_no_loop_touches_is_as_it_was(tmp_path: Path) -> None:
    spun = instruction(1, "red.shared.add.f32") | {"collision": "spun"}
    rows = [
        Access(warp(stride=8, base=0x1000_0000)),
        Access(warp(stride=4, base=0), pc=1, step=1, space=Space.SHARED),
    ]
    trace = hand_trace(tmp_path / "t.cutrace", rows, instructions=[instruction(0), spun])
    found = cutrace.analyze(trace, "h100").launches[0].counters
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 8
    assert (found[LOADS], found[ATOMIC_WAVEFRONTS]) == (1, 2)

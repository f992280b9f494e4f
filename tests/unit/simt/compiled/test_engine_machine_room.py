"""Waves of one shape take turns in a room: nothing of one is left for the next."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from engines import assert_same_under_both

import cutrace
from cutrace.tracer.simt.wave import WaveState

SOURCE = """
__device__ int deep(int n, int lane)
{
    return n <= 0 ? lane : deep(n - 1, lane ^ n) + 1;
}

__global__ void ways(int *out, const int *in, int n, int mode)
{
    __shared__ int seen[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    seen[threadIdx.x] = 0;
    if (mode == 2 && threadIdx.x % 3 == 1)
        return;
    for (int bit = 0; bit < 5; ++bit)
        if (mode == 1 && (i >> bit & 1))
            for (int k = 0; k < (i & 7); ++k)
                sum += in[(i * k + bit) % n];
        else
            sum += bit;
    if (mode == 3)
        sum += in[n + (i & 1)];
    if (mode == 4)
        sum += deep(i % 9, i);
    if (mode != 2)
        sum += __syncthreads_count(sum & 1);
    seen[threadIdx.x] += sum;
    out[i] = seen[threadIdx.x];
}
"""
SIZE = 48 * 8
MODES = (0, 1, 0, 2, 0, 4, 1, 2, 0)


def launches(gpu: cutrace.Session) -> list[Any]:
    """Launches that leave much behind, in turn with some that would show it."""
    kernel = gpu.compile(SOURCE).get_function("ways")
    given = gpu.to_device(np.arange(SIZE, dtype=np.int32), name="in")
    results = []
    for blocks in (8, 3):
        for mode in MODES:
            out = gpu.device_array(SIZE, np.int32, name="out")
            kernel[blocks, 48](out, given, SIZE, mode)
            results.append(out.copy_to_host())
    return results


def test_launches_after_one_another_are_as_with_arrays_made_anew(tmp_path: Path) -> None:
    with patch.object(WaveState, "begin", autospec=True, side_effect=WaveState.begin) as begun:
        assert_same_under_both(tmp_path, launches)
    assert begun.call_count >= 2 * (len(MODES) - 1)


def test_lanes_outside_of_an_array_are_those_of_their_own_launch(tmp_path: Path) -> None:
    def reading_beyond(gpu: cutrace.Session) -> list[Any]:
        kernel = gpu.compile(SOURCE).get_function("ways")
        given = gpu.to_device(np.arange(SIZE, dtype=np.int32), name="in")
        out = gpu.device_array(SIZE, np.int32, name="out")
        for mode in (3, 0, 3):
            kernel[8, 48](out, given, SIZE, mode)
        return [out.copy_to_host()]

    def session(trace: Path, **options: Any) -> cutrace.Session:
        return whole(trace, bounds="report", **options)

    whole = cutrace.Session
    with patch("cutrace.Session", session):
        trace = assert_same_under_both(tmp_path, reading_beyond)
    told = [bool(launch.outside) for launch in cutrace.read_trace(trace).manifest.launches]
    assert told == [True, False, True]


def test_a_room_that_nobody_is_in_holds_nothing_of_its_last_wave(tmp_path: Path) -> None:
    rooms: list[WaveState] = []
    begin = WaveState.begin

    def note(room: WaveState) -> None:
        assert room.machine.frames.size > 0
        begin(room)
        rooms.append(room)

    with (
        patch.object(WaveState, "begin", note),
        cutrace.Session(tmp_path / "a.cutrace", engine="compiled") as gpu,
    ):
        launches(gpu)
    assert {room.blocks for room in rooms} == {3, 8}
    for room in rooms:
        left: Any = room.machine  # an array or a structure that is not there reads as 0
        assert (left.frames, left.row_base, left.table) == (0, 0, 0)

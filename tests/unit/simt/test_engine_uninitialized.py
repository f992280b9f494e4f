"""Loads of bytes that nobody wrote, reported when a session asks for it."""

import re
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.commands._main import run


def launch(source: str, is_filled: bool, watch: bool | None = True, block: int = 64) -> None:
    """Run the only kernel of a source on 2 blocks; its `int *` has 256 elements."""
    with cutrace.Session(check_uninitialized=watch) as gpu:
        module = gpu.compile(source)
        (name,) = module.kernels
        data = gpu.device_array(256, np.int32, name="data")
        if is_filled:
            data.fill(0)
        module.get_function(name)[2, block](data)


def fault(source: str, is_filled: bool = False, block: int = 64) -> str:
    """What is said of a kernel that loads what nobody wrote."""
    with pytest.raises(KernelFault) as raised:
        launch(source, is_filled, block=block)
    return str(raised.value)


ADD = """
__global__ void k(int *data) { data[threadIdx.x + 128] = data[threadIdx.x] + 1; }
"""


def test_a_load_from_an_array_that_was_never_filled_is_a_fault() -> None:
    assert fault(ADD) == (
        "source.cu:2: kernel `k` reads 4 bytes that nobody wrote at global address"
        " 0x700000000 in thread (0, 0, 0) of block (0, 0, 0): `data`, from 0x700000000 on, was not"
        " copied to there, filled or stored to"
    )


def test_a_filled_array_may_be_read() -> None:
    launch(ADD, is_filled=True)


def test_nothing_is_reported_unless_asked_for() -> None:
    launch(ADD, is_filled=False, watch=None)


def test_what_a_kernel_stored_may_be_read_by_it_and_the_next() -> None:
    source = """
    __global__ void k(int *data) {
        data[threadIdx.x] = 1;
        data[threadIdx.x + 64] = data[threadIdx.x];
    }"""
    with cutrace.Session(check_uninitialized=True) as gpu:
        module = gpu.compile(source)
        data = gpu.device_array(256, np.int32)
        module.get_function("k")[1, 64](data)
        reader = gpu.compile(ADD).get_function("k")
        reader[1, 128](data)
        assert data.copy_to_host()[128:].tolist() == [2] * 128


def test_the_first_thread_that_loads_beyond_what_was_written_is_named() -> None:
    source = """
    __global__ void k(int *data) {
        __shared__ int part[64];
        int t = threadIdx.x;
        if (blockIdx.x == 0 || t < 37) part[t] = t;
        __syncthreads();
        data[t] = part[t ^ 1];
    }"""
    # block 1 wrote elements 0 to 36: thread 36 is the first to load one beyond, element 37
    text = fault(source)
    assert text.startswith("source.cu:7: ")
    assert "4 bytes that nobody wrote at shared address 0x94 in thread (36, 0, 0)" in text
    assert "of block (1, 0, 0)" in text


def test_shared_memory_of_a_block_is_not_that_of_the_block_before() -> None:
    source = """
    __global__ void k(int *data) {
        extern __shared__ int part[];
        __shared__ int own[64];
        if (blockIdx.x == 0) own[threadIdx.x] = 1;
        if (blockIdx.x == 1) data[0] = own[threadIdx.x];
    }"""
    assert "of block (1, 0, 0)" in fault(source)


def test_a_local_array_is_watched_for_each_thread() -> None:
    source = """
    __global__ void k(int *data) {
        int own[16];
        int t = threadIdx.x;
        if (t != 40)
            for (int i = 0; i < 16; i++) own[(i + t) & 15] = i;
        data[t] = own[(t * 7) & 15];
    }"""
    text = fault(source)
    assert "at local address" in text
    assert "in thread (40, 0, 0) of block (0, 0, 0)" in text


def test_half_of_a_wide_load_is_enough() -> None:
    source = """
    __global__ void k(int *data) {
        data[2 * threadIdx.x] = 1;
        int2 both = ((const int2 *)data)[threadIdx.x];
        data[140] = both.x + both.y;
    }"""
    assert "reads 8 bytes that nobody wrote at global address 0x700000000" in fault(source)


def test_single_bytes_count() -> None:
    source = """
    __global__ void k(int *data) {
        unsigned char *bytes = (unsigned char *)data;
        if (threadIdx.x != 3) bytes[threadIdx.x] = 1;
        data[20 + threadIdx.x] = data[threadIdx.x / 32];
    }"""
    assert fault(source).startswith("source.cu:5: ")


def test_an_atomic_reads_what_it_updates_and_an_exchange_does_not() -> None:
    add = """
    __global__ void k(int *data) { atomicAdd(data + threadIdx.x % 4, 1); }
    """
    assert "global address 0x700000000 in thread (0, 0, 0)" in fault(add)
    launch(add, is_filled=True)
    launch(add.replace("atomicAdd", "atomicExch"), is_filled=False)


def test_module_variables_and_constants_are_zero_from_the_start() -> None:
    source = """
    __device__ int table[64];
    __constant__ int few[4];
    __global__ void k(int *data) { data[threadIdx.x] = table[threadIdx.x] + few[threadIdx.x % 4]; }
    """
    launch(source, is_filled=False)


COPY = """
__global__ void copy(int *to, const int *from) { *to = from[threadIdx.x]; }
"""


def copy_and_read(threads: int, is_filled: bool) -> None:
    """Read a pitched array, of which each row of 32 ints has 32 more, copied from another."""
    with cutrace.Session(check_uninitialized=True) as gpu:
        kernel = gpu.compile(COPY).get_function("copy")
        first, second = (gpu.pitched_array((2, 32), np.int32) for _ in range(2))
        if is_filled:
            first.copy_to_device(np.ones((2, 32), np.int32))
        second.fill(0)
        second.copy_to_device(first)
        kernel[1, threads](gpu.device_array(1, np.int32), second)


def test_copies_between_arrays_carry_what_was_written() -> None:
    copy_and_read(32, is_filled=True)
    with pytest.raises(KernelFault, match=re.escape("thread (0, 0, 0) of block (0, 0, 0)")):
        copy_and_read(32, is_filled=False)


def test_the_padding_of_rows_is_never_written() -> None:
    with pytest.raises(KernelFault, match=re.escape("thread (32, 0, 0) of block (0, 0, 0)")):
        copy_and_read(64, is_filled=True)


def test_the_command_line_asks_for_it_and_launch_lines_without_values_are_unfilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("add.cu").write_text(ADD)
    line = ["record", "add.cu", "--check-uninitialized", "--launch"]
    assert run([*line, "k<<<1, 64>>>(data:i32[256])"]) == 1
    assert "add.cu:2: kernel `k` reads 4 bytes that nobody wrote" in capsys.readouterr().err
    assert run([*line, "k<<<1, 64>>>(data:i32[256]=zeros)"]) == 0

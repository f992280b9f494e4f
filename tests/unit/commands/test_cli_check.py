"""`cutrace check --races` on kernels that lack a barrier, and on their right twins."""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_run import traced_kernel

from cutrace.commands._main import run
from cutrace.models.analyses.race import RaceCheck, find_races

Captured = pytest.CaptureFixture[str]

TILED = """\
// cutrace: product<<<(2, 2), (16, 16)>>>(c:f32[32,32], a:f32[32,32], b:f32[32,32])
__global__ void product(float *c, const float *a, const float *b)
{
    __shared__ float tileA[16][16], tileB[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int start = 0; start < 32; start += 16) {
        tileA[y][x] = a[row * 32 + start + x];
        tileB[y][x] = b[(start + y) * 32 + column];
        __syncthreads();  // tiles are whole
        for (int k = 0; k < 16; k++)
            sum += tileA[y][k] * tileB[k][x];
        __syncthreads();  // tiles are no longer needed
    }
    c[row * 32 + column] = sum;
}
"""
WHOLE = "__syncthreads();  // tiles are whole"
FREE = "__syncthreads();  // tiles are no longer needed"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, where `tiled.cu` may be written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(folder: Path, source: str) -> int:
    """The exit status of checking a source."""
    (folder / "tiled.cu").write_text(source)
    return run(["check", "tiled.cu", "--races"])


def test_the_tiled_product_with_both_barriers_is_clean(folder: Path, capsys: Captured) -> None:
    assert checked(folder, TILED) == 0
    assert capsys.readouterr().out == (
        "launch 0  product<<<(2, 2), (16, 16)>>>(c, a, b)\n"
        "  no shared-memory races between warps\n\n"
        "next: cutrace analyze tiled.cu\n"
    )


def test_without_the_first_barrier_tiles_are_read_before_they_are_whole(
    folder: Path, capsys: Captured
) -> None:
    # a warp holds two rows of 16: rows of tileA stay within their warp, columns of tileB do not.
    # 256 elements, each stored once and loaded by 16 threads, 14 of them in other warps, in 2
    # rounds of 4 blocks: 256 * 14 * 2 * 4 = 28672
    assert checked(folder, TILED.replace(WHOLE, "")) == 1
    text = re.sub(
        r"(\.f32).*;", r"\1 ...;", capsys.readouterr().err
    )  # registers are the compiler's
    assert text == (
        "cutrace: races in shared memory between 1 pair of lines\n\n"
        "launch 0  product<<<(2, 2), (16, 16)>>>(c, a, b)\n"
        "  race at tileB, element 0 of 4 bytes (shared address 1024) in block (0, 0, 0):\n"
        "    tiled.cu:10  tileB[y][x] = b[(start + y) * 32 + column];\n"
        "      stores: warp 0, lane 0, thread (0, 0, 0)\n"
        "      st.shared.f32 ...;\n"
        "    tiled.cu:13  sum += tileA[y][k] * tileB[k][x];\n"
        "      loads: warp 1, lanes 0, 16, threads (0, 2, 0), (0, 3, 0)\n"
        "      ld.shared.f32 ...;\n"
        "    28672 pairs of accesses in 4 of 4 blocks, with no barrier between\n"
        "    put `__syncthreads()` after the store at tiled.cu:10 and before the load at"
        " tiled.cu:13, where all threads of the block come by\n"
    )


def test_without_the_second_barrier_tiles_are_overwritten_while_they_are_read(
    folder: Path, capsys: Captured
) -> None:
    # loads of one round against stores of the next: once in 2 rounds
    assert checked(folder, TILED.replace(FREE, "")) == 1
    text = capsys.readouterr().err
    assert "    14336 pairs of accesses in 4 of 4 blocks, with no barrier between\n" in text
    assert "after the load at tiled.cu:13 and before the store at tiled.cu:10" in text


def test_a_line_that_races_with_itself_is_named_once(folder: Path, capsys: Captured) -> None:
    # without the second barrier, part[t] of one round is stored while warp 0 reads it in the next
    (folder / "k.cu").write_text(
        "// cutrace: reduce<<<1, 128>>>(out:i32[1], in:i32[128])"
        + REDUCE.replace("        __syncthreads();\n", "")
    )
    assert run(["check", "k.cu", "--races"]) == 1
    said = capsys.readouterr().err
    assert "k.cu:8 races with itself: put `__syncthreads()` between its" in said
    assert "at k.cu:8 and before" not in said


def test_a_recorded_trace_is_checked_as_a_source_is(folder: Path, capsys: Captured) -> None:
    (folder / "tiled.cu").write_text(TILED.replace(WHOLE, ""))
    assert run(["record", "tiled.cu"]) == 0
    assert run(["check", "tiled.cutrace", "--races"]) == 1
    assert "race at tileB, element 0 of 4 bytes" in capsys.readouterr().err


def test_a_launch_that_cannot_be_checked_says_why(folder: Path, capsys: Captured) -> None:
    halves = TILED.replace(WHOLE, 'asm volatile("barrier.sync 1, %0;" :: "r"(blockDim.x * 16));')
    assert checked(folder, halves) == 0
    out = capsys.readouterr().out
    expected = "races not checked: a register names the barrier or its threads at tiled.cu:11\n"
    assert expected in out


def test_nothing_to_check_is_an_error_that_names_what_there_is(
    folder: Path, capsys: Captured
) -> None:
    (folder / "tiled.cu").write_text(TILED)
    assert run(["check", "tiled.cu"]) == 2
    assert "--races looks for races in shared memory" in capsys.readouterr().err


def test_the_help_lists_it_under_compare(capsys: Captured) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.index("Compare") < text.index(" check ") < text.index("Look up")


REDUCE = """
__global__ void reduce(int *out, const int *in) {
    __shared__ int part[128];
    int t = threadIdx.x;
    part[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
"""
DOUBLE_BUFFER = """
__global__ void shift(int *out, const int *in) {
    __shared__ int now[2][128];
    int t = threadIdx.x;
    now[0][t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        now[1 - round % 2][t] = now[round % 2][(t + 1) % 128];
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = now[0][t];
}
"""
WARP_SYNCHRONOUS = """
__global__ void sums(int *out, const int *in) {
    __shared__ volatile int part[128];
    int t = threadIdx.x, lane = t % 32;
    part[t] = in[blockIdx.x * 128 + t];
    __syncwarp();
    for (int half = 16; half > 0; half /= 2) {
        if (lane < half) part[t] += part[t + half];
        __syncwarp();
    }
    out[blockIdx.x * 128 + t] = part[t - lane];
}
"""
ATOMICS = """
__global__ void count(int *out, const int *in) {
    __shared__ int bins[8];
    int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[in[blockIdx.x * 128 + t] % 8], 1);
    __syncthreads();
    if (t < 8) out[blockIdx.x * 128 + t] = bins[t];
}
"""
EXITED = """
__global__ void some(int *out, const int *in) {
    __shared__ int part[128];
    int t = threadIdx.x;
    if (t >= 64) return;
    part[t] = in[t];
    __syncthreads();
    out[t] = part[63 - t];
}
"""
STRIDED = """
__global__ void mirror(int *out, const int *in) {
    extern __shared__ int held[];
    for (int i = threadIdx.x; i < 512; i += blockDim.x) held[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 512; i += blockDim.x) out[i] = held[511 - i];
}
"""


def check_kernel(source: str) -> RaceCheck:
    """Check one launch of two blocks of 128 threads with 2 KiB of dynamic shared memory."""
    out, numbers = np.zeros(512, np.int32), np.arange(512, dtype=np.int32)
    with traced_kernel(source, 2, 128, out, numbers, shared=2048) as (_, trace):
        return find_races(trace)


@pytest.mark.parametrize(
    "source", [REDUCE, DOUBLE_BUFFER, WARP_SYNCHRONOUS, ATOMICS, EXITED, STRIDED]
)
def test_right_kernels_have_no_races(source: str) -> None:
    found = check_kernel(source)
    assert (found.races, found.refusal) == ((), "")


BARRIER = "__syncthreads();"


@pytest.mark.parametrize(
    ("source", "which", "lines"),
    [
        (REDUCE, 1, {(5, 8)}),  # part[t + 64] is read in the first round before it is stored
        (REDUCE, 2, {(8, 8)}),  # part[t + 32] is read in the second while the first goes on
        (DOUBLE_BUFFER, 1, {(5, 8)}),
        (DOUBLE_BUFFER, 2, {(8, 8)}),
        (ATOMICS, 1, {(5, 7)}),
        (ATOMICS, 2, {(7, 9)}),
        (EXITED, 1, {(6, 8)}),
        (STRIDED, 1, {(4, 6)}),
    ],
)
def test_each_missing_barrier_is_a_race_between_the_lines_around_it(
    source: str, which: int, lines: set[tuple[int, int]]
) -> None:
    parts = source.split(BARRIER)
    lacking = BARRIER.join(parts[:which]) + BARRIER.join(parts[which:])
    found = check_kernel(lacking).races
    seen = {tuple(sorted((race.first.line, race.second.line))) for race in found}
    assert seen == lines

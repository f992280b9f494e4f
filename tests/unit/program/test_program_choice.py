"""Long programs: what is recorded of them is chosen, and what does not fit is run and said."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from engines import files_of
from program_run import HEAD, Done, cutrace

from cutrace.traces.verify import verify

SOURCE = (
    HEAD
    + """
__global__ void first(int *x, int i) { atomicAdd(x, i); }
__global__ void second(int *x, int i) { x[threadIdx.x * (i + 1) % 900] = i; }
int main(int count, char **words)
{
    int *d, host;
    CHECK(cudaMalloc(&d, 4096));
    CHECK(cudaMemset(d, 0, 4096));
    for (int i = 0; i < atoi(words[1]); i++) {
        first<<<1, 32>>>(d, i);
        second<<<1, 64>>>(d + 32, i);
    }
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    printf("%d\\n", host);
}
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, built."""
    place = tmp_path_factory.mktemp("choice")
    (place / "app.cu").write_text(SOURCE)
    built = cutrace(place, "nvcc", "app.cu", "-o", "app")
    assert built.status == 0, built.err
    return place


def shown(done: Done) -> list[str]:
    """Each launch as `first 3`: its kernel and its last argument."""
    found = (one.launch for one in done.trace.launches)
    return [f"{launch.name} {launch.arguments[-1].value}" for launch in found]


def test_skip_and_kernels_choose_and_all_is_run(folder: Path) -> None:
    done = cutrace(folder, "record", "--skip", "2", "--kernels", "^sec", "--", "./app", "5")
    assert done.status == 0, done.err
    assert done.out == f"{32 * (0 + 1 + 2 + 3 + 4)}\n"
    assert shown(done) == ["second 2", "second 3", "second 4"]
    assert "7 launches were run and not chosen to be recorded" in done.err
    assert done.trace.manifest.left_out == "7 launches were run and not chosen to be recorded"
    assert "left out" in cutrace(folder, "info", "app.cutrace").out


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_a_launch_of_many_rows_is_run_where_it_is_not_chosen(tmp_path: Path, engine: str) -> None:
    source = """
__global__ void spread(unsigned *x)  // more rows than are written at once, of ever new patterns
{
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    for (unsigned round = 1; round <= 32; round++)
        atomicAdd(x + i * (2 * round + 1) % 65536, 1);  // of each round, each element once
}
__global__ void one(unsigned *x) { x[threadIdx.x] = 1; }
int main()
{
    unsigned *d, host[64];
    CHECK(cudaMalloc(&d, 65536 * 4));
    CHECK(cudaMemset(d, 0, 65536 * 4));
    spread<<<256, 256>>>(d);
    one<<<1, 32>>>(d);
    CHECK(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        if (host[i] != (i < 32 ? 1 : 32))
            return 1;
}
"""
    (tmp_path / "app.cu").write_text(HEAD + source)
    done = cutrace(tmp_path, "record", "app.cu", "--engine", engine, "--kernels", "one", "--")
    assert done.status == 0, done.err
    assert shown(done) == ["one x"]


def test_launches_ends_the_program_when_so_many_of_the_chosen_are_recorded(folder: Path) -> None:
    words = ("--skip", "1", "--kernels", "first", "--launches", "2")
    done = cutrace(folder, "record", *words, "--", "./app", "1000000")
    assert done.status == 0, done.err
    assert shown(done) == ["first 1", "first 2"]
    assert "it was ended after 2 launches, as asked" in done.err


def test_past_the_largest_size_launches_are_run_and_the_trace_and_the_message_say_so(
    folder: Path,
) -> None:
    done = cutrace(folder, "record", "--max-trace-size", "64K", "--", "./app", "60")
    assert (done.status, done.out) == (0, f"{32 * sum(range(60))}\n"), done.err
    count = len(done.trace.launches)
    said = (
        f"{120 - count} launches were run and left out: with the first of them the trace would be"
        " larger than the 65536 bytes of --max-trace-size"
    )
    assert 0 < count < 120
    assert f"app.cutrace has {count} launches; {said}" in done.err
    assert done.trace.manifest.left_out == said
    assert verify(done.trace) == []
    assert shown(done) == [f"{('first', 'second')[n % 2]} {n // 2}" for n in range(count)]
    before = files_of(done.path)
    cutrace(folder, "record", "--max-trace-size", "64K", "--", "./app", "60")
    assert files_of(done.path) == before  # where it ends does not depend on the disk's speed


def test_where_the_first_launch_does_not_fit_there_is_a_trace_that_says_it(folder: Path) -> None:
    done = cutrace(folder, "record", "--max-trace-size", "1K", "--", "./app", "2")
    assert (done.status, done.out) == (0, f"{32 * 1}\n"), done.err
    assert len(done.trace.launches) == 0
    assert done.trace.manifest.left_out.startswith("4 launches were run and left out")


def test_a_pattern_that_is_none_is_refused_before_anything_runs(folder: Path) -> None:
    done = cutrace(folder, "record", "--kernels", "(", "--", "./app", "2")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cutrace: --kernels (: not a regular expression")


def test_on_a_terminal_launches_rate_and_bytes_are_told_meanwhile(folder: Path) -> None:
    terminal, theirs = pty.openpty()
    words = [sys.executable, "-m", "cutrace", "record", "--timeout", "4", "--", "./app", "1000000"]
    with subprocess.Popen(words, cwd=folder, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        told = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(terminal, 1 << 16):
                told += part
        assert process.wait() == 0
    os.close(terminal)
    assert b"\r\x1b[Krecording ./app: 2 s, " in told
    assert b" launches (" in told
    assert b" a second), " in told
    assert b" MB\r" in told

"""What programs do wrong is one clear message; the child is gone, and no half trace is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines import files_of
from program_run import HEAD, Done, cutrace

SOURCE = (
    HEAD
    + """
#include <unistd.h>
__global__ void put(int *x, int at) { x[at] = at; }
__global__ void wait(volatile int *flag) { while (*flag == 0) {} }
__global__ void count(int *x) { for (;;) x[0] += x[1]; }
int main(int words, char **word)
{
    int *d, *host = (int *)malloc(400);
    srand(7);
    CHECK(cudaMalloc(&d, 4096));
    CHECK(cudaMemset(d, 0, 4096));
    printf("%d\\n", getpid());
    fflush(stdout);
    if (words < 2) return 0;
    if (!strcmp(word[1], "fault"))
        for (int i = 0; i < 100; i++) put<<<1, 1>>>(d, i == 57 ? 1 << 28 : i);
    put<<<1, 1>>>(d, 1);
    if (!strcmp(word[1], "beyond")) {
        for (int i = 0; i < 1 << 20; i++) host[i] = i;
        free(host);
    }
    if (!strcmp(word[1], "output"))
        for (int i = 0; i < 1000; i++) {
            static char text[1 << 20];
            memset(text, 'x', sizeof text);
            fwrite(text, 1, sizeof text, stdout);
        }
    if (!strcmp(word[1], "wait")) wait<<<1, 32>>>(d);
    if (!strcmp(word[1], "count")) count<<<1, 1>>>(d);
    if (!strcmp(word[1], "random"))
        for (int i = 0; i < 40; i++) put<<<1 + rand() % 3, 32>>>(d, rand() % 1024);
    cudaError_t error = cudaDeviceSynchronize();
    fprintf(stderr, "found: %s\\n", cudaGetErrorName(error));
    return error != cudaSuccess;
}
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, built."""
    place = tmp_path_factory.mktemp("bad")
    (place / "app.cu").write_text(SOURCE)
    built = cutrace(place, "nvcc", "app.cu", "-o", "app")
    assert built.status == 0, built.err
    return place


def record(folder: Path, *words: str) -> Done:
    """Record the program; afterwards it is gone, and so is what a trace is built in."""
    done = cutrace(folder, "record", *words)
    if first := done.out.partition("\n")[0]:
        with pytest.raises(ProcessLookupError):
            os.kill(int(first), 0)
    assert not list(folder.glob(".*.partial"))
    return done


def test_a_kernel_that_faults_in_launch_57_leaves_those_before(folder: Path) -> None:
    done = record(folder, "--", "./app", "fault")
    assert (done.status, len(done.trace.launches)) == (1, 57)
    assert "cutrace: launch 57: app.cu:" in done.err
    assert "kernel `put` writes 4 bytes outside" in done.err
    assert "found: cudaErrorIllegalAddress" in done.err
    assert "app.cutrace has 57 launches, 1 that failed" in done.err


def test_a_program_that_writes_past_its_host_buffer_crashes_alone(folder: Path) -> None:
    done = record(folder, "--", "./app", "beyond")
    assert done.status in (128 + 6, 128 + 11)  # by the C library, or by the machine
    assert "it was ended by SIG" in done.err
    assert "app.cutrace has 1 launch" in done.err


def test_a_thousand_megabytes_of_output_are_the_program_s_own(folder: Path) -> None:
    words = [sys.executable, "-m", "cutrace", "record", "--", "./app", "output"]
    size = 0
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while part := process.stdout.read(1 << 20):
            size += len(part)
        assert process.wait() == 0
    assert size > 1000 << 20


def test_a_kernel_that_waits_for_ever_is_a_fault(folder: Path) -> None:
    done = record(folder, "--", "./app", "wait")
    assert done.status == 1
    assert "kernel `wait` makes no progress" in done.err
    assert "found: cudaErrorLaunchTimeout" in done.err
    assert len(done.trace.launches) == 1


def test_a_kernel_that_counts_for_ever_is_a_fault(folder: Path) -> None:
    done = record(folder, "--", "./app", "count")
    assert done.status == 1
    assert "kernel `count` does not end: nothing leaves the loop" in done.err
    assert "found: cudaErrorLaunchTimeout" in done.err
    assert len(done.trace.launches) == 1


def test_a_program_that_is_not_executable_is_said_so_and_nothing_is_left(folder: Path) -> None:
    (folder / "plain").write_text("text")
    done = record(folder, "-o", "none.cutrace", "--", "./plain")
    assert (done.status, done.out) == (2, "")
    assert done.err == "cutrace: ./plain: it is not executable: chmod +x makes it so\n"
    assert not (folder / "none.cutrace").exists()


def test_a_file_that_is_no_program_is_said_so(folder: Path) -> None:
    (folder / "noise").write_bytes(b"\x7fELF but not really")
    (folder / "noise").chmod(0o755)
    done = record(folder, "-o", "none.cutrace", "--", "./noise")
    assert done.status == 2
    assert done.err.startswith("cutrace: ./noise: ")
    assert len(done.err.splitlines()) == 1
    assert not (folder / "none.cutrace").exists()


def test_a_program_without_cuda_is_said_so_and_nothing_is_left(folder: Path) -> None:
    done = record(folder, "-o", "none.cutrace", "--", "/bin/true")
    assert done.status == 2
    assert done.err.startswith("cutrace: /bin/true: ")
    assert len(done.err.splitlines()) <= 2
    assert not (folder / "none.cutrace").exists()


def test_a_folder_is_no_program_and_a_source_stands_before_the_dashes(folder: Path) -> None:
    (folder / "place").mkdir(exist_ok=True)
    done = record(folder, "-o", "none.cutrace", "--", "./place")
    assert done.err == "cutrace: ./place: a folder; expected a program\n"
    done = record(folder, "-o", "none.cutrace", "--", "./app.cu")
    assert done.err.startswith("cutrace: ./app.cu: a source, which is built where it stands before")
    assert done.status == 2


def test_a_program_that_launches_nothing_is_a_whole_trace_without_launches(folder: Path) -> None:
    done = record(folder, "--", "./app")
    assert done.status == 0
    assert len(done.trace.launches) == 0
    assert "app.cutrace has 0 launches" in done.err


def test_a_seeded_program_twice_is_the_same_trace_byte_for_byte(folder: Path) -> None:
    for name in ("one", "two"):
        assert record(folder, "-o", f"{name}.cutrace", "--", "./app", "random").status == 0
    one, two = (files_of(folder / f"{name}.cutrace") for name in ("one", "two"))
    assert one == two
    assert len(one) > 40

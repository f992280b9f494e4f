"""A CUDA program, host code and all, from the shell to its trace."""

from pathlib import Path

import pytest
from engines import files_of
from program_run import HEAD, cutrace, record, record_built

ADD = """
__global__ void add(const float *a, const float *b, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 1000;
    size_t bytes = n * sizeof(float);
    float *host = (float *)malloc(bytes), *d_a, *d_b, *d_sum;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_sum, bytes));
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpy(d_a, host, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, host, bytes, cudaMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(d_a, d_b, d_sum, n);
    CHECK(cudaMemcpy(host, d_sum, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) if (host[i] != 2 * i) return 1;
    CHECK(cudaFree(d_a));
    printf("%d sums are right\\n", n);
    return count > 2 ? atoi(words[2]) : 0;
}
"""


def test_a_program_runs_unchanged_and_its_launch_is_recorded(tmp_path: Path) -> None:
    done = record(tmp_path, ADD, "700")
    assert (done.status, done.out) == (0, "700 sums are right\n"), done.err
    assert "app.cutrace has 1 launch" in done.err
    (launch,) = done.trace.launches
    assert launch.launch.grid == (3, 1, 1)  # 700 threads in blocks of 256
    assert launch.launch.signature == "add(const float *a, const float *b, float *sum, int n)"
    assert [argument.value for argument in launch.launch.arguments] == ["a", "b", "sum", 700]


def test_a_program_may_use_names_that_cuda_13_no_longer_has(tmp_path: Path) -> None:
    old = ADD.replace("CHECK(cudaFree(d_a));", "CHECK(cudaThreadSynchronize()); cudaThreadExit();")
    done = record(tmp_path, old, "700")
    assert (done.status, done.out) == (0, "700 sums are right\n"), done.err


def test_copies_are_events_with_the_names_that_kernels_have_for_arrays(tmp_path: Path) -> None:
    events = record_built(tmp_path, HEAD + ADD, "700").trace.manifest.events
    found = [(each.kind, each.direction, each.array, each.bytes) for each in events]
    assert found == [
        ("copy", "HtoD", "a", 2800),
        ("copy", "HtoD", "b", 2800),
        ("launch", "", "", 0),
        ("copy", "DtoH", "sum", 2800),
    ]


def test_the_exit_status_is_the_program_s(tmp_path: Path) -> None:
    done = record_built(tmp_path, HEAD + ADD, "100", "7")
    assert done.status == 7
    assert "exit status 7" in done.err
    assert len(done.trace.launches) == 1


def test_a_program_recorded_twice_gives_the_same_trace(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        assert record_built(folder, HEAD + ADD).status == 0
    assert files_of(first / "app.cutrace") == files_of(second / "app.cutrace")


def test_a_program_that_cutrace_nvcc_built_is_recorded_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + ADD)
    built = cutrace(tmp_path, "nvcc", "-O2", "-arch=sm_80", "-o", "app", "app.cu")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app", "64")
    assert (done.status, done.out) == (0, "64 sums are right\n"), done.err
    assert done.trace.manifest.compilers[0].target == "sm_80"


def test_what_a_header_says_is_part_of_what_is_built(tmp_path: Path) -> None:
    source = '#include "size.h"\n__global__ void k() {}\nint main() { k<<<SIZE, 32>>>(); }\n'
    for size in (3, 5):
        (tmp_path / "size.h").write_text(f"#define SIZE {size}\n")
        assert record(tmp_path, source).trace.launches[0].launch.grid == (size, 1, 1)


def test_a_program_of_several_files_is_built_and_built_anew_where_one_changes(
    tmp_path: Path,
) -> None:
    (tmp_path / "blocks.cpp").write_text("int blocks() { return 2; }\n")
    (tmp_path / "app.cu").write_text(
        "int blocks();\n__global__ void k() {}\nint main() { k<<<blocks(), 32>>>(); }\n"
    )
    for count in (2, 4):
        (tmp_path / "blocks.cpp").write_text(f"int blocks() {{ return {count}; }}\n")
        done = cutrace(tmp_path, "record", "app.cu", "blocks.cpp", "--")
        assert done.status == 0, done.err
        assert done.trace.launches[0].launch.grid == (count, 1, 1)


def test_a_program_named_as_a_source_is_recorded_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(
        HEAD
        + """
__global__ void k() {}
int main(int words, char **word) { k<<<atoi(word[1]), words>>>(); return words - 3; }
"""
    )
    built = cutrace(tmp_path, "nvcc", "app.cu", "-o", "93")
    assert built.status == 0, built.err
    (tmp_path / "run.sh").write_text('#!/bin/sh\nexec ./93 "$@"\n')
    (tmp_path / "run.sh").chmod(0o755)
    for blocks, words in enumerate((["./93"], ["93"], ["./run.sh"]), 5):
        done = cutrace(tmp_path, "record", "-o", "app.cutrace", *words, "--", f"{blocks}", "x")
        assert done.status == 0, done.err
        launch = done.trace.launches[0].launch
        assert (launch.grid, launch.block) == ((blocks, 1, 1), (3, 1, 1))


def test_an_object_file_named_as_a_source_is_linked(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(
        HEAD + "__global__ void k() {}\nint main() { k<<<7, 1>>>(); }\n"
    )
    built = cutrace(tmp_path, "nvcc", "-c", "app.cu", "-o", "app.o")
    assert built.status == 0, built.err
    (tmp_path / "app.o").chmod(0o755)  # as on a file system without modes
    done = cutrace(tmp_path, "record", "app.o", "--")
    assert done.status == 0, done.err
    assert done.trace.launches[0].launch.grid == (7, 1, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--"], "nothing stands behind --: expected a program, as in -- ./app"),
        (["--", "./ap"], "./ap: there is no such program; nearest: app.cu"),
        (["--", "./app.cu"], "./app.cu: a source, which is built where it stands before --"),
        (["--", "true"], "true: it made no CUDA calls"),
        (["--", "false"], "false: it ended with exit status 1 before its first CUDA call"),
        (["quit.py"], "quit.py: it ended with signal SIGABRT before its first CUDA call"),
        (["app.cu", "--libraries", "run"], "--libraries run is for a program, as in cutrace"),
        (["app.cu", "--nvcc-flags=-g"], "--nvcc-flags -g is for the sources of a program"),
        (["ap.cu", "--"], "ap.cu: there is no such file; nearest: app.cu"),
        (["app.cu", "app.cu"], "2 sources: they are built into a program if `--` stands behind"),
    ],
)
def test_what_cannot_be_run_is_one_message(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "app.cu").write_text("int main() {}\n")
    (tmp_path / "quit.py").write_text("import os\nos.abort()\n")
    done = cutrace(tmp_path, "record", *words)
    assert done.status == 2
    assert done.err.startswith(f"cutrace: {message}")
    assert not list(tmp_path.glob("*.cutrace"))


def test_what_does_not_compile_is_said_by_the_compiler(tmp_path: Path) -> None:
    done = record(tmp_path, "int main() { nonsense(); }\n")
    assert done.status == 2
    assert "app.cu(" in done.err
    assert 'identifier "nonsense" is undefined' in done.err


LATCH = """
__global__ void wait_for(volatile int *latch, int until) { while (*latch < until) ; }
__global__ void add(int *sum) { *sum += 1; }

int main()
{
    int *latch, *sum;
    cudaStream_t one, two;
    CHECK(cudaMallocManaged(&latch, 4));
    CHECK(cudaMallocManaged(&sum, 4));
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    *latch = *sum = 0;
    wait_for<<<1, 1, 0, one>>>(latch, 1);
    CHECK(cudaGetLastError());
    add<<<1, 1, 0, two>>>(sum);
    CHECK(cudaStreamSynchronize(two));
    printf("%d %d ", *sum, cudaStreamQuery(one) == cudaErrorNotReady);
    *latch = 1;
    CHECK(cudaStreamQuery(one));
    wait_for<<<1, 1, 0, one>>>(latch, 2);
    *latch = 2;
    CHECK(cudaDeviceSynchronize());
    wait_for<<<1, 1, 0, one>>>(latch, 3);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def test_a_kernel_waits_for_what_its_program_does_meanwhile(tmp_path: Path) -> None:
    done = record(tmp_path, LATCH)
    # the last one waits for ever
    assert (done.status, done.out) == (0, "1 1 cudaErrorLaunchTimeout"), done.err
    names = [each.launch.signature.partition("(")[0] for each in done.trace.launches]
    assert names == ["add", "wait_for", "wait_for"]

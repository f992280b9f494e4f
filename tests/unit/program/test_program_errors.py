"""What goes wrong in a program is CUDA's error in the program, and a whole trace of the rest."""

from pathlib import Path

from program_run import HEAD, record_built

SOURCE = (
    HEAD
    + r"""
__global__ void put(int *x, int at) { x[at] = 1; }
__global__ void __launch_bounds__(64) hello() { printf("hello from %d\n", threadIdx.x); }
__global__ void spin(volatile int *x) { while (x[0] == 0) x[1] = x[1] + 1; }
#include <cassert>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
__global__ void check(int n) { assert((int)threadIdx.x < n); }
__global__ void put_bytes() { printf("%c%c%s|", 0, 233, "\303\251"); }
__global__ void __launch_bounds__(1) one(int *p) { p[threadIdx.x] = 1; }
__global__ void __launch_bounds__(1024) most(int *p) { p[threadIdx.x] = 1; }
__global__ void __launch_bounds__(1024, 2) twice(int *p) { p[threadIdx.x] = 1; }
__global__ void __launch_bounds__(128, 4, 2) pairs(int *p) { p[threadIdx.x] = 1; }
template <int N> __global__ void __launch_bounds__(N, 1) sized(int *p) { p[threadIdx.x] = 1; }
template <class K> void show(K kernel, int *p)
{
    cudaFuncAttributes own;
    CHECK(cudaFuncGetAttributes(&own, kernel));
    int threads = own.maxThreadsPerBlock;
    kernel<<<1, threads>>>(p);
    CHECK(cudaGetLastError());
    kernel<<<1, threads + 1>>>(p);
    printf("%d %s\n", threads, cudaGetErrorName(cudaGetLastError()));
}
static int fault()
{
    int *d;
    CHECK(cudaMalloc(&d, 4));
    put<<<1, 1>>>(d, 0);
    put<<<0, 1>>>(d, 0);
    printf("grid of 0: %s\n", cudaGetErrorName(cudaGetLastError()));
    hello<<<1, 96>>>(); /* CUDA_ERROR_INVALID_VALUE in numba-cuda's TestLaunchBounds */
    printf("launch bounds: %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("then: %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("no such: %s\n", cudaGetErrorName(cudaImportExternalMemory(0, 0)));
    hello<<<1, 2>>>();
    put<<<1, 1>>>(d, 1 << 28);
    printf("launched\n");
    printf("found: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    printf("stays: %s\n", cudaGetErrorName(cudaMalloc(&d, 4)));
    return 3;
}
static int run_threads()
{
    int n, *d;
    if (scanf("%d", &n) != 1) return 1;
    CHECK(cudaMalloc(&d, 4096));
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++) threads.emplace_back([=] { put<<<1, 1>>>(d, i); });
    for (auto &thread : threads) thread.join();
    fprintf(stderr, "done\n");
    std::vector<int> host(n);
    CHECK(cudaMemcpy(host.data(), d, 4 * n, cudaMemcpyDeviceToHost));
    for (int value : host) if (value != 1) return 2;
    return 0;
}
int main(int, char **words)
{
    const char *part = words[1];
    int *d, status;
    if (!strcmp(part, "fault")) return fault();
    if (!strcmp(part, "crash")) { hello<<<1, 1>>>(); fflush(stdout); abort(); }
    if (!strcmp(part, "launches")) for (;;) hello<<<1, 1>>>();
    if (!strcmp(part, "time")) { hello<<<1, 1>>>(); cudaDeviceSynchronize(); for (;;) {} }
    if (!strcmp(part, "interrupt")) {
        hello<<<1, 1>>>();
        cudaDeviceSynchronize();
        kill(getppid(), SIGINT);
        for (;;) pause();
    }
    if (!strcmp(part, "threads")) return run_threads();
    if (!strcmp(part, "assertion")) {
        check<<<2, 64>>>(40);
        return puts(cudaGetErrorName(cudaDeviceSynchronize())) < 0;
    }
    if (!strcmp(part, "bytes")) {
        freopen("out", "wb", stdout);
        put_bytes<<<1, 1>>>();
        return cudaDeviceSynchronize();
    }
    CHECK(cudaMalloc(&d, 4096));
    if (!strcmp(part, "spin")) {
        CHECK(cudaMemset(d, 0, 8));
        hello<<<1, 1>>>();
        spin<<<1, 32>>>(d);
        CHECK(cudaDeviceSynchronize());
    }
    if (!strcmp(part, "fork")) {
        if (!fork()) _exit(cudaMalloc(&d, 4) == cudaErrorInitializationError ? 7 : 8);
        wait(&status);
        put<<<1, 1>>>(d, 0);
        CHECK(cudaDeviceSynchronize());
        return WEXITSTATUS(status);
    }
    if (!strcmp(part, "bounds"))
        show(one, d), show(most, d), show(twice, d), show(pairs, d), show(sized<1000>, d);
}
"""
)


def test_a_kernel_s_fault_stays_and_the_launches_before_it_are_recorded(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "fault")
    assert done.out == (
        "grid of 0: cudaErrorInvalidConfiguration\n"
        "launch bounds: cudaErrorInvalidValue\nthen: cudaSuccess\n"
        "no such: cudaErrorNotSupported\n"
        "hello from 0\nhello from 1\n"
        "launched\n"
        "found: an illegal memory access was encountered\n"
        "stays: cudaErrorIllegalAddress\n"
    ), done.err
    assert done.status == 3
    assert "cudaImportExternalMemory is not supported" in done.err
    assert "launch 2: app.cu:8: kernel `put` writes 4 bytes outside" in done.err
    assert "thread (0, 0, 0) of block (0, 0, 0)" in done.err
    assert len(done.trace.launches) == 2


def test_a_program_that_crashes_leaves_its_launches(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "crash")
    assert done.status == 128 + 6  # SIGABRT
    assert done.out == "hello from 0\n"
    assert "it was ended by SIGABRT; app.cutrace has 1 launch" in done.err


def test_a_program_without_end_is_ended_after_so_many_launches(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "launches", options=["--launches", "3"])
    assert done.status == 0
    assert "it was ended after 3 launches, as asked; app.cutrace has 3 launches" in done.err
    assert len(done.trace.launches) == 3


def test_a_program_without_end_is_ended_after_so_many_seconds(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "time", options=["--timeout", "4"])
    assert done.status == 0, done.err
    assert "it was ended after 4 s, as asked; app.cutrace has 1 launch" in done.err


def test_a_kernel_without_end_is_named_when_the_time_is_over(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "spin", options=["--timeout", "4"])
    assert (
        "it was ended after 4 s, as asked, while launch 1 ran, kernel `spin`; app.cutrace has 1"
        in done.err
    )


def test_ctrl_c_ends_the_program_and_leaves_its_launches(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "interrupt")
    assert done.status == 130, done.err
    assert "it was interrupted; app.cutrace has 1 launch" in done.err


def test_a_forked_child_has_no_device_and_the_parent_keeps_it(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "fork")
    assert done.status == 7, done.err
    assert len(done.trace.launches) == 1


def test_input_output_and_threads_are_the_program_s(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "threads", text="8\n")
    assert done.status == 0, done.err
    assert "done\n" in done.err
    assert len(done.trace.launches) == 8


def test_an_assertion_s_fault_is_the_program_s_to_see(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "assertion")
    assert done.out.endswith("cudaErrorAssert\n"), done.err
    failed = "assertion `(int)threadIdx.x < n` failed in thread (40, 0, 0) of block (0, 0, 0)"
    assert f"app.cu:17: {failed}" in done.err


def test_a_kernel_prints_the_very_bytes(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "bytes")
    assert done.status == 0, done.err
    assert (tmp_path / "out").read_bytes() == b"\0\xe9\xc3\xa9|"


def test_launch_bounds_say_how_many_threads_a_block_may_have(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "bounds")
    assert done.out == (
        "1 cudaErrorInvalidValue\n"
        "1024 cudaErrorInvalidConfiguration\n"  # beyond what any kernel may have
        "1024 cudaErrorInvalidConfiguration\n"
        "128 cudaErrorInvalidValue\n"
        "1000 cudaErrorInvalidValue\n"
    ), done.err

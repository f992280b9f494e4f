"""Programs and scripts that fork children: each ends in its way, and the trace is its parent's."""

import subprocess
import sys
from pathlib import Path

import pytest
from program_run import cutrace, record

from cutrace.traces.reader import read_trace

PROGRAM = r"""
#include <sys/wait.h>
#include <unistd.h>

__global__ void put(int *out, int value) { out[threadIdx.x] = value; }

static int *d;

static void launch(int value)
{
    int host[32];
    put<<<1, 32>>>(d, value);
    CHECK(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
    if (host[31] != value) exit(7);
}

int main()
{
    int status, error;
    CHECK(cudaMalloc(&d, 128));
    launch(0);
    if (system("exit 3") >> 8 != 3) return 1;
    launch(1);
    fflush(stdout);
    if (!fork()) exit(4); /* with all that is registered for the end of a process */
    wait(&status);
    if (status >> 8 != 4) return 2;
    launch(2);
    if (!fork()) { kill(getpid(), 9); }
    wait(&status);
    launch(3);
    if (!fork()) { /* it has no device, as with CUDA */
        put<<<1, 32>>>(d, 9);
        error = cudaDeviceSynchronize();
        _exit(error == cudaErrorInitializationError ? 5 : 6);
    }
    wait(&status);
    if (status >> 8 != 5) return 3;
    launch(4);
    FILE *pipe = popen("cat", "w");
    launch(5);
    return pclose(pipe);
}
"""
DRIVER = '''
import ctypes, multiprocessing, os, sys

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 data) {
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;
ret; }
"""
context, module, kernel = (ctypes.c_void_p() for _ in range(3))
data = ctypes.c_uint64()

def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert not status, (name, status)

def begin():
    global cuda
    cuda = ctypes.CDLL("libcuda.so.1")
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"count")
    call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(256))

def launch():
    word = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, word, None)
    call("cuCtxSynchronize")

def serve(queue):
    while queue.get() is not None:
        pass

def work():
    """Launch, beside workers of a loader of data that end while this process goes on."""
    begin()
    launch()
    forked = multiprocessing.get_context("fork")
    queues = [forked.SimpleQueue() for _ in range(3)]
    workers = [forked.Process(target=serve, args=(queue,)) for queue in queues]
    for worker in workers:
        worker.start()
    launch()
    for queue in queues[:2]:
        queue.put(1)
        queue.put(None)
    workers[0].join()
    launch()
    workers[2].kill()
    workers[1].join()
    workers[2].join()
    with forked.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    if not os.fork():
        sys.exit(0)
    os.wait()
    launch()
'''
IN_PROCESS = """
import cutrace, driver
with cutrace.recording("app.cutrace") as recording:
    driver.work()
print(recording.launches)
"""


def test_children_of_a_program_take_nothing_of_it_along(tmp_path: Path) -> None:
    done = record(tmp_path, PROGRAM)
    assert done.status == 0, done.err + done.out
    assert [one.launch.arguments[1].value for one in done.trace.launches] == [0, 1, 2, 3, 4, 5]


def test_workers_of_a_recorded_script_take_nothing_of_it_along(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"{DRIVER}\nwork()\n")
    done = cutrace(tmp_path, "record", "app.py", "-o", "app.cutrace")
    assert done.status == 0, done.err
    assert len(done.trace.launches) == 4


@pytest.mark.slow  # a process and its recorder
def test_workers_of_a_process_that_records_itself_take_nothing_along(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, "-c", IN_PROCESS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "4"), done.stderr
    assert len(read_trace(tmp_path / "app.cutrace").launches) == 4

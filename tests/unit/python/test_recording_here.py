"""`with cutrace.recording(...)`: a Python process that records what it launches itself.

The process calls the driver as Python packages do: by the name of its library.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from program_run import cutrace

from cutrace.traces.reader import read_trace

DRIVER = '''
import ctypes

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

class Driver:
    """One array of 64 words, and the kernel that writes each thread's number to it."""
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.count, self.data = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.count), module, b"count")
        self.call("cuMemAlloc_v2", ctypes.byref(self.data), ctypes.c_size_t(256))
    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        assert not status, (name, status)
    def launch(self, threads):
        word = (ctypes.c_void_p * 1)(ctypes.addressof(self.data))
        self.call("cuLaunchKernel", self.count, 1, 1, 1, threads, 1, 1, 0, None, word, None)
    def read(self):
        host = (ctypes.c_uint32 * 64)()
        self.call("cuMemcpyDtoH_v2", host, self.data, ctypes.c_size_t(256))
        return list(host)
'''

SCRIPT = """
import ctypes, os, sys
import cutrace
from driver import Driver

with cutrace.recording("one.cutrace") as one:
    gpu = Driver()
    gpu.launch(32)
# CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE is not there: CUDA_ERROR_INVALID_VALUE
assert gpu.cuda.cuFuncSetAttribute(gpu.count, 17, 3) == 1
# an object that a graph may hold is given back once when nobody holds it any more
given = []
give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(given.append)
held = ctypes.c_void_p()
gpu.call("cuUserObjectCreate", ctypes.byref(held), ctypes.c_void_p(7), give, 1, 1)
gpu.call("cuUserObjectRetain", held, 1)
gpu.call("cuUserObjectRelease", held, 1)
assert not given
gpu.call("cuUserObjectRelease", held, 1)
assert given == [7]
pools = ctypes.c_void_p(), ctypes.c_void_p()
gpu.call("cuMemGetDefaultMemPool", ctypes.byref(pools[0]), (ctypes.c_int * 2)(), 1)
gpu.call("cuDeviceGetDefaultMemPool", ctypes.byref(pools[1]), 0)
assert pools[0].value == pools[1].value
gpu.launch(64)  # between two: run, and in no trace
gpu.cuda._cutrace_count(1, None)
gpu.launch(64)
picoseconds = ctypes.c_uint64()
gpu.cuda._cutrace_count(0, ctypes.byref(picoseconds))
print(picoseconds.value)
assert gpu.read() == list(range(64))
try:
    with cutrace.recording("two.cutrace", kernels="count", skip=1) as two:
        gpu.launch(8)
        gpu.launch(16)
        raise ValueError("of the script's own")
except ValueError as error:
    print(error)
print(one.launches, two.launches, one.profile("h100").launches[0].counters["global_store_requests"])
try:
    cutrace.recording("three.cutrace", "v100").__enter__()
except cutrace.CutraceError as error:
    print(error)

class Shell:  # of IPython, as far as a magic needs it
    def register_magic_function(self, function, kind, name):
        self.magic = function
    def run_cell(self, code):
        exec(code, globals())
        return type("Result", (), {"success": True})

shell = Shell()
cutrace.load_ipython_extension(shell)
shell.magic("--by launch --counters global_store_requests", "gpu.launch(64)")
shell.magic("-d v100 pass")
sys.stdout.flush()
if not os.fork():
    try:
        cutrace.recording().__enter__()
    except cutrace.CutraceError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""


def run(folder: Path, script: str, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "driver.py").write_text(DRIVER)
    (folder / "script.py").write_text(script)
    command = [sys.executable, *options, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.slow  # a process and its recorder
def test_a_process_records_parts_of_what_it_launches(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT)
    assert done.returncode == 0, done.stderr
    picoseconds, own, counts, device, *magic, forked = done.stdout.splitlines()
    # 256 bytes through the L1 of one SM, 128 a cycle of 1.98 GHz
    assert int(picoseconds) == pytest.approx(1000 * 256 / 128 / 1.98, abs=1)
    assert own == "of the script's own"
    assert counts == "1 1 1"  # 32 threads: one warp, one request
    assert device.startswith("this process has the device h100 since its first recording")
    assert magic[0] == "count<<<1, 64>>>(data)"
    assert any(line.split() == ["global_store_requests", "2"] for line in magic)  # two warps
    assert magic[-1] == "cutrace: no kernel was launched"
    assert "this process was forked from one that records" in forked
    (first,) = read_trace(tmp_path / "one.cutrace").launches
    assert first.launch.block == (32, 1, 1)
    (second,) = read_trace(tmp_path / "two.cutrace").launches
    assert second.launch.block == (16, 1, 1)  # behind the skipped launch of 8


ENDS = """
import ctypes
from driver import Driver

gpu = Driver()
gpu.launch(32)
place = ctypes.c_void_p()
gpu.cuda.cuGetProcAddress_v2(b"cuOfTheFuture", ctypes.byref(place), 99010, 0, None)
gpu.cuda.cuIpcGetMemHandle(ctypes.byref(place), gpu.data)
raise ValueError("of the script")
"""


@pytest.mark.slow  # a process and its recorder
def test_an_exception_ends_a_script_as_it_does_without_us(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "app.py").write_text(ENDS)
    done = cutrace(tmp_path, "record", "app.py")
    assert done.status == 1
    last = ENDS.splitlines().index('raise ValueError("of the script")') + 1
    assert (
        "Traceback (most recent call last):\n"
        f'  File "{tmp_path}/app.py", line {last}, in <module>\n'
        '    raise ValueError("of the script")\n'
        "ValueError: of the script\n"
    ) in done.err.replace('"app.py"', f'"{tmp_path}/app.py"')
    assert "cuOfTheFuture" not in done.err  # it was asked for, not called
    assert "cuIpcGetMemHandle is not supported" in done.err
    (launch,) = done.trace.launches  # whole, with what was launched before
    assert launch.launch.block == (32, 1, 1)


FIXTURE = """
from driver import Driver

def test_one(cutrace_recording):
    Driver().launch(64)
    cutrace_recording.assert_budget("count", {"global_store_requests": 2}, device="h100")

def test_two(cutrace_recording):
    Driver().launch(64)
    cutrace_recording.assert_budget("count", {"global_store_requests": 1}, device="h100")
"""


@pytest.mark.slow  # a process and its recorder
def test_a_fixture_holds_what_a_test_launches_to_a_budget(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FIXTURE)
    done = run(tmp_path, FIXTURE, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "global_store_requests" in done.stdout

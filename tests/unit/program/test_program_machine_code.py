"""Programs with PTX for another device, and those with machine code alone."""

import re
import runpy
import struct
import subprocess
from pathlib import Path

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program.code import (
    MACHINE_CODE,
    PTX,
    Entry,
    MachineCodeError,
    choose_ptx,
)
from cutrace.tracer.program.run import STARTUP
from cutrace.tracer.sass.cubin import Cubin
from cutrace.tracer.sass.frame import write_frame

PROGRAM = """
__global__ void __launch_bounds__(128) turn(float *x, int n)
{
    __shared__ float part[128];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[n - 1 - threadIdx.x];
}
int main()
{
    float host[128], *x;
    cudaFuncAttributes facts;
    for (int i = 0; i < 128; i++) host[i] = i;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaFuncGetAttributes(&facts, turn));
    printf("%zu %d %d\\n", facts.sharedSizeBytes, facts.numRegs, facts.maxThreadsPerBlock);
    turn<<<1, 128>>>(x, 128);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
    CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    printf("%g\\n", host[0]);
    return 0;
}
"""


def build(folder: Path, *options: str) -> str:
    """Build the program by NVIDIA's nvcc; return what it says of registers."""
    toolkit = find_toolkit()
    (folder / "app.cu").write_text(HEAD + PROGRAM)
    command = [str(toolkit.nvcc), *options, f"-L{toolkit.root / 'lib'}", "-ccbin"]
    command += [find_host_compiler(), "-Xptxas", "-v", "app.cu"]
    return subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True).stderr


def record_it(folder: Path, *options: str) -> Done:
    return cutrace(folder, "record", *options, "-o", "app.cutrace", "--", "./app")


@pytest.mark.parametrize("packed", ["none", "size", "speed"])
def test_a_program_without_ptx_runs_as_machine_code(tmp_path: Path, packed: str) -> None:
    said = build(
        tmp_path, "-gencode", "arch=compute_90,code=sm_90", f"-compress-mode={packed}", "-o", "app"
    )
    registers = re.search(r"Used (\d+) registers", said)
    assert registers
    done = record_it(tmp_path)
    # 128 floats of shared memory, __launch_bounds__(128); the array is reversed
    assert done.out == f"512 {registers[1]} 128\ncudaSuccess\n127\n", done.err
    assert done.err.count("kernels of app run as machine code of sm_90: it has no PTX") == 1
    assert "next: cutrace analyze app.cutrace -d sm_90" in done.err
    (launch,) = done.trace.launches
    assert (launch.launch.code, launch.launch.shared_static) == ("sm_90", 512)


@pytest.mark.parametrize("newer", ["120", "120f"])
def test_machine_code_of_the_device_runs_where_ptx_is_of_a_newer_one(
    tmp_path: Path, newer: str
) -> None:
    codes = ("arch=compute_90,code=sm_90", f"arch=compute_{newer},code=compute_{newer}")
    build(tmp_path, "-gencode", codes[0], "-gencode", codes[1], "-o", "app")
    done = record_it(tmp_path)
    assert done.out.splitlines()[1:] == ["cudaSuccess", "127"], done.err
    assert [each.launch.code for each in done.trace.launches] == ["sm_90"]


def test_ptx_of_a_newer_device_does_not_stand_for_machine_code() -> None:
    """Its blocks have the sizes of the newer device, the host's launches those of this one."""
    text = b".version 8.8\n.target sm_120\n.address_size 64\n"
    image = [Entry(MACHINE_CODE, 90, b""), Entry(PTX, 120, text)]
    both = r"the code for sm_90 \(9\.0 to 9\.9\), sm_120 \(12\.0 and newer\): choose -d sm_90"
    with pytest.raises(CutraceError, match=both):
        choose_ptx([image], 80)
    with pytest.raises(MachineCodeError) as refusal:
        choose_ptx([image], 90)
    assert refusal.value.cubins == [b""]


def test_shared_memory_of_debug_information_takes_no_bytes_of_the_file(tmp_path: Path) -> None:
    """NCCL and bitsandbytes have such a section; ptxas writes it for some sources alone."""
    build(tmp_path, "-arch=sm_90", "-cubin", "-o", "app.cubin")
    own = b".nv.shared._Z4turnPfi"
    text = (tmp_path / "app.cubin").read_bytes()
    data = bytearray(text.replace(own, b".nv_debug.shared".ljust(len(own), b"\0")))
    (table,) = struct.unpack_from("<Q", data, 0x28)
    number = [*Cubin(bytes(data)).sections].index(".nv_debug.shared")
    struct.pack_into("<Q", data, table + 64 * number + 32, len(data))
    assert Cubin(bytes(data)).kernels == ("_Z4turnPfi",)


def test_ptx_of_a_newer_device_alone_stays_foreign(tmp_path: Path) -> None:
    build(tmp_path, "-gencode", "arch=compute_120,code=compute_120", "-o", "app")
    done = record_it(tmp_path, "--libraries", "run")
    assert "the device is of compute capability 9.0, the code for sm_120" in done.err


def test_the_kernels_of_a_cubin_have_the_resources_that_ptxas_says(tmp_path: Path) -> None:
    said = build(tmp_path, "-arch=sm_90", "-cubin", "-o", "app.cubin")
    numbers = re.search(r"Used (\d+) registers.*?(\d+) bytes smem", said)
    assert numbers
    data = (tmp_path / "app.cubin").read_bytes()
    cubin = Cubin(data, "app.cubin")
    assert (cubin.capability, cubin.kernels) == (90, ("_Z4turnPfi",))
    kernel = cubin.resources("_Z4turnPfi")
    assert (kernel.registers, kernel.shared) == tuple(map(int, numbers.groups()))
    assert kernel.parameters == ((0, 8), (8, 4))  # a pointer and an int
    assert kernel.bounds["maxntid"][0] == 128
    text = ".entry _Z4turnPfi(.param .u64 p1, .param .u32 p2)"
    assert text in write_frame(cubin)
    with pytest.raises(CutraceError, match=r"^app\.cubin: machine code is cut off or damaged"):
        Cubin(data[: len(data) // 2], "app.cubin")


def test_cupys_thrust_and_curand_run_themselves_where_libraries_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = str(STARTUP / "cupy_host.py")
    assert set(runpy.run_path(path)["CHANGES"]) >= {"cupy.cuda.thrust"}
    monkeypatch.setenv("CUTRACE_LIBRARIES", "run")
    assert runpy.run_path(path)["CHANGES"] == {}


def test_another_word_for_libraries_is_refused(tmp_path: Path) -> None:
    done = cutrace(tmp_path, "record", "--libraries", "both", "--", "true")
    assert "--libraries both: expected compute or run" in done.err

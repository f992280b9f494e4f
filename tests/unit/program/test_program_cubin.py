"""Machine code of programs: what a linked cubin has, and which of several runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.resources import assemble_for
from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program.code import MACHINE_CODE, Entry, choose_cubin

LINKED = """
__device__ int counter = 3;
__device__ int table[100];
__device__ int *where = &counter;
__device__ __noinline__ float third(float x) { return sqrtf(x) / 3.0f; }
__global__ void k(int *o)
{
    o[threadIdx.x] = counter + table[threadIdx.x];
    table[threadIdx.x] = third(9.0f * threadIdx.x * threadIdx.x);
    atomicAdd(where, 1);
}
int main()
{
    int *o, host[32];
    CHECK(cudaMalloc(&o, sizeof host));
    k<<<1, 32>>>(o);
    k<<<1, 32>>>(o);
    CHECK(cudaMemcpy(host, o, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d %d\\n", host[0], host[7], host[31]);
    return 0;
}
"""
LARGE = """
struct Large { int words[1500]; char last; };
__global__ void k(Large large, char c, float by, double *o)
{
    o[threadIdx.x] = large.words[1000 + threadIdx.x] * by + large.last + c;
}
int main()
{
    Large large = {};
    double *o, host[32];
    for (int i = 0; i < 1500; i++) large.words[i] = i;
    large.last = 5;
    CHECK(cudaMalloc(&o, sizeof host));
    k<<<1, 32>>>(large, 7, 0.5f, o);
    CHECK(cudaMemcpy(host, o, sizeof host, cudaMemcpyDeviceToHost));
    printf("%g %g\\n", host[0], host[31]);
    return 0;
}
"""
ADDRESS = """
struct Map { int words[32]; };
__device__ __noinline__ int at(const int *p) { return *p; }
__global__ void k(const __grid_constant__ Map map, int *o)
{
    o[threadIdx.x] = at(map.words + threadIdx.x) + 1000 * ((size_t)&map % 64);
}
int main()
{
    Map map;
    int *o, host[32];
    for (int i = 0; i < 32; i++) map.words[i] = i;
    CHECK(cudaMalloc(&o, sizeof host));
    k<<<1, 32>>>(map, o);
    CHECK(cudaMemcpy(host, o, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d\\n", host[0], host[31]);
    return 0;
}
"""
WHICH = """
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 0
#endif
__global__ void k(int *o) { *o = __CUDA_ARCH__; }
int main()
{
    int *o, host = 0;
    CHECK(cudaMalloc(&o, sizeof host));
    k<<<1, 1>>>(o);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
    CHECK(cudaMemcpy(&host, o, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d\\n", host);
    return 0;
}
"""


def build(folder: Path, text: str, archs: tuple[str, ...], *options: str) -> None:
    """Build a program by NVIDIA's nvcc, with machine code alone."""
    toolkit = find_toolkit()
    (folder / "app.cu").write_text(HEAD + text)
    codes = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in archs]
    command = [str(toolkit.nvcc), *codes, *options, f"-L{toolkit.root / 'lib'}", "-ccbin"]
    command += [find_host_compiler(), "app.cu", "-o", "app"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)


def record_it(folder: Path, *options: str) -> Done:
    return cutrace(folder, "record", *options, "-o", "app.cutrace", "--", "./app")


@pytest.mark.parametrize("arch", ["80", "90"])
def test_functions_and_variables_of_a_linked_program_are_found(tmp_path: Path, arch: str) -> None:
    build(tmp_path, LINKED, (arch,), "-rdc=true")
    done = record_it(tmp_path, "-d", f"sm_{arch}")
    # the counter is 3 + 32 at the second launch; sqrt(9 * i * i) / 3 = i
    assert done.out == "35 42 66\n", done.err
    assert {launch.launch.code for launch in done.trace.launches} == {f"sm_{arch}"}


def test_parameters_of_more_than_4_kilobytes_have_their_places(tmp_path: Path) -> None:
    build(tmp_path, LARGE, ("90",))
    done = record_it(tmp_path, "-d", "sm_90")
    assert done.out == "512 527.5\n", done.err  # 1000 / 2 + 12, 1031 / 2 + 12


@pytest.mark.parametrize("arch", ["80", "90"])
def test_the_address_of_a_parameter_is_that_of_its_place_in_the_constant_bank(
    tmp_path: Path, arch: str
) -> None:
    build(tmp_path, ADDRESS, (arch,))
    done = record_it(tmp_path, "-d", f"sm_{arch}")
    # parameters begin at 0x160 and 0x210, which are 32 and 16 behind a multiple of 64
    start = {"80": 32, "90": 16}[arch]
    assert done.out == f"{1000 * start} {1000 * start + 31}\n", done.err


@pytest.mark.parametrize(
    ("archs", "device", "ran"),
    [
        (("80", "86"), "sm_86", 860),
        (("80", "86"), "sm_89", 860),
        (("80", "90"), "sm_86", 800),
        (("90", "90a"), "sm_90", 900),
    ],
)
def test_the_newest_code_of_the_devices_generation_runs(
    tmp_path: Path, archs: tuple[str, ...], device: str, ran: int
) -> None:
    build(tmp_path, WHICH, archs)
    done = record_it(tmp_path, "-d", device)
    assert done.out == f"cudaSuccess\n{ran}\n", done.err
    assert done.trace.launches[0].launch.code == f"sm_{ran // 10}"
    shown = cutrace(tmp_path, "analyze", "app.cutrace", "-d", device)
    assert shown.status == 0, shown.err
    foreign = cutrace(tmp_path, "analyze", "app.cutrace", "-d", "sm_120")
    assert f"ran the machine code of `k` for sm_{ran // 10}, and sm_120 has capability 12.0" in (
        foreign.err
    )


def test_code_of_another_generation_alone_is_refused_by_name(tmp_path: Path) -> None:
    build(tmp_path, WHICH, ("80", "86"))
    done = record_it(tmp_path, "-d", "sm_90")
    assert done.out.startswith("cudaErrorNoKernelImageForDevice\n")
    assert "machine code alone (sm_80, sm_86), no PTX, and none for compute capability 9.0" in (
        done.err
    )


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """The cubins of a small kernel, by capability."""
    text = ".version 8.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"
    return {arch: assemble_for(text, f"sm_{arch}") for arch in (80, 90)}


def test_a_cubin_of_another_capability_is_refused_by_file_with_the_device_to_choose(
    cubins: dict[int, bytes],
) -> None:
    assert choose_cubin([cubins[80]], "k.cubin", 86) == cubins[80]
    with pytest.raises(CutraceError, match=r"^k\.cubin: machine code of sm_80 does not run on .*"
                       r"9\.0: choose -d sm_80$"):  # fmt: skip
        choose_cubin([cubins[80]], "k.cubin", 90)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_cubin_that_is_cut_off_is_refused_by_file(cubins: dict[int, bytes], share: float) -> None:
    data = cubins[90]
    with pytest.raises(CutraceError, match=r"^k\.cubin: machine code is cut off or damaged$"):
        choose_cubin([data[: int(share * len(data))]], "k.cubin", 90)


def test_a_file_of_another_machine_is_refused() -> None:
    own = Path(sys.executable).resolve().read_bytes()
    with pytest.raises(CutraceError, match=r"^a\.out: .*(no GPU of NVIDIA's|damaged)"):
        choose_cubin([own], "a.out", 90)


def test_damaged_compression_is_refused(cubins: dict[int, bytes]) -> None:
    entry = Entry(MACHINE_CODE, 90, cubins[90][:100], flags=0x8000, whole=len(cubins[90]))
    with pytest.raises(CutraceError, match="cut off or damaged"):
        _ = entry.data

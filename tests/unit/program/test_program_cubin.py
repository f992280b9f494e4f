"""Machine code of programs: what a linked cubin has, and which of several runs."""

import atexit
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.resources import assemble_for
from cutrace.tracer.front.sass import sections
from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program.code import MACHINE_CODE, Entry, choose_cubin

LINKED = """
__device__ int counter = 3;
static __device__ int table[100];  // nvdisasm has no name for it
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


@cache
def build(text: str, archs: tuple[str, ...], *options: str) -> Path:
    """Build a program by NVIDIA's nvcc, with machine code alone, once."""
    toolkit, kept = find_toolkit(), TemporaryDirectory()
    atexit.register(kept.cleanup)
    folder = Path(kept.name)
    (folder / "app.cu").write_text(HEAD + text)
    codes = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in archs]
    command = [str(toolkit.nvcc), *codes, *options, f"-L{toolkit.root / 'lib'}", "-ccbin"]
    command += [find_host_compiler(), "app.cu", "-o", "app"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder / "app"


def record_it(folder: Path, app: Path, *options: str) -> Done:
    return cutrace(folder, "record", *options, "-o", "app.cutrace", "--", str(app))


@pytest.mark.parametrize("arch", ["80", "90"])
def test_functions_and_variables_of_a_linked_program_are_found(tmp_path: Path, arch: str) -> None:
    app = build(LINKED, ("80", "90"), "-rdc=true")
    done = record_it(tmp_path, app, "-d", f"sm_{arch}")
    # the counter is 3 + 32 at the second launch; sqrt(9 * i * i) / 3 = i
    assert done.out == "35 42 66\n", done.err
    assert {launch.launch.code for launch in done.trace.launches} == {f"sm_{arch}"}


def test_parameters_of_more_than_4_kilobytes_have_their_places(tmp_path: Path) -> None:
    done = record_it(tmp_path, build(LARGE, ("90",)), "-d", "sm_90")
    assert done.out == "512 527.5\n", done.err  # 1000 / 2 + 12, 1031 / 2 + 12


@pytest.mark.parametrize("arch", ["80", "90"])
def test_the_address_of_a_parameter_is_that_of_its_place_in_the_constant_bank(
    tmp_path: Path, arch: str
) -> None:
    done = record_it(tmp_path, build(ADDRESS, ("80", "90")), "-d", f"sm_{arch}")
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
    done = record_it(tmp_path, build(WHICH, archs), "-d", device)
    assert done.out == f"cudaSuccess\n{ran}\n", done.err
    assert done.trace.launches[0].launch.code == f"sm_{ran // 10}"
    shown = cutrace(tmp_path, "analyze", "app.cutrace", "-d", device)
    assert shown.status == 0, shown.err
    foreign = cutrace(tmp_path, "analyze", "app.cutrace", "-d", "sm_120")
    assert f"ran the machine code of `k` for sm_{ran // 10}, and sm_120 has capability 12.0" in (
        foreign.err
    )


def test_code_of_another_generation_alone_is_refused_by_name(tmp_path: Path) -> None:
    done = record_it(tmp_path, build(WHICH, ("80", "86")), "-d", "sm_90")
    assert done.out.startswith("cudaErrorNoKernelImageForDevice\n")
    assert "machine code alone (sm_80, sm_86), no PTX, and none for compute capability 9.0" in (
        done.err
    )


GAP = """.version 8.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 to, .param .align 16 .b8 gap[{gap}], .param .align 8 .b8 pair[16],
                  .param .u32 last) {{
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [to]; ld.param.u64 %d1, [pair]; ld.param.u64 %d2, [pair+8];
ld.param.u32 %r0, [last];
st.global.u64 [%d0], %d1; st.global.u64 [%d0+8], %d2; st.global.u32 [%d0+16], %r0;
ret; }}
"""
CALLER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel, to = (ctypes.c_uint64() for _ in range(4))
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert not status, (name, status)
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), open("k.cubin", "rb").read())
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"k")
call("cuMemAlloc_v2", ctypes.byref(to), ctypes.c_size_t(24))
out, place, size = (ctypes.c_uint64 * 3)(), ctypes.c_size_t(), ctypes.c_size_t()
places = []
for number in range(3):
    call("cuFuncGetParamInfo", kernel, ctypes.c_size_t(number), ctypes.byref(place),
         ctypes.byref(size))
    places.append((place.value, size.value))
pair, last = (ctypes.c_uint64 * 2)(5, 6), ctypes.c_uint32(7)
each = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (to, pair, last)))
call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, each, None)
call("cuMemcpyDtoH_v2", out, to, ctypes.c_size_t(24))
print(places, *out)
whole = bytearray(places[-1][0] + 4)
for (start, _), value in zip(places, (to, pair, last)):
    whole[start : start + len(bytes(value))] = bytes(value)
size.value = len(whole)
buffer = ctypes.create_string_buffer(bytes(whole))
extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
call("cuMemsetD8_v2", to, 0, ctypes.c_size_t(24))
call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, extra)
call("cuMemcpyDtoH_v2", out, to, ctypes.c_size_t(24))
print(*out)
"""


def without_second_parameter(cubin: bytes) -> bytes:
    """Return the cubin with a gap where its second parameter was."""
    info = next(each for each in sections(cubin) if each.name == ".nv.info.k")
    data, place = bytearray(cubin), info.start
    while place < info.start + info.size:
        form, number, size = struct.unpack_from("<BBH", data, place)
        if number in (0x17, 0x45):  # EIATTR_KPARAM_INFO and its second version
            (ordinal,) = struct.unpack_from("<H", data, place + 8)
            struct.pack_into("<H", data, place + 8, ordinal - (ordinal > 1))
            data[place + 1] = 0x01 if ordinal == 1 else number  # EIATTR_PAD
        place += 4 + (size if form == 4 else 0)
    return bytes(data)


@pytest.mark.parametrize(("arch", "gap"), [("80", 32), ("90", 104), ("90", 4400)])
def test_parameters_lie_where_the_cubin_says_with_gaps_between_them(
    tmp_path: Path, arch: str, gap: int
) -> None:
    cubin = assemble_for(GAP.format(gap=gap), f"sm_{arch}")
    (tmp_path / "k.cubin").write_bytes(without_second_parameter(cubin))
    (tmp_path / "k.py").write_text(CALLER)
    command = ("-o", "app.cutrace", "--", sys.executable, "k.py")
    done = cutrace(tmp_path, "record", "-d", f"sm_{arch}", *command)
    start = 16 + gap  # the pointer, 8 bytes up to a multiple of 16, and the gap
    places = [(0, 8), (start, 16), (start + 16, 4)]
    assert done.out == f"{places} 5 6 7\n5 6 7\n", done.err
    signatures = {each.launch.signature for each in done.trace.launches}
    assert signatures == {"k(u64 p1, b8 p2[16], u32 p3)"}


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

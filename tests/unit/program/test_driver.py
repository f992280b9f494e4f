"""Programs that call CUDA's driver, from the shell to their traces."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from program_run import Done, cutrace, record_built, together

from cutrace.tracer.front.toolkit import find_toolkit
from cutrace.tracer.program.library import (
    DRIVER,
    driver_table,
    functions_of,
    read_forwards,
    write_forwards,
)

HEAD = """
#include <cuda.h>
#define DO(call) do { CUresult e = (call); const char *n; if (e) { cuGetErrorName(e, &n); \\
    printf("line %d: %s\\n", __LINE__, n); exit(9); } } while (0)
static const char *ptx =
    ".version 7.0\\n.target sm_70\\n.address_size 64\\n"
    ".visible .global .align 4 .u32 factor = 2;\\n"
    ".visible .entry scale(.param .u32 n, .param .u64 data) {\\n"
    ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;\\n"
    "ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [data];\\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\\n"
    "mad.lo.s32 %r2, %r2, %r3, %r4; setp.ge.u32 %p1, %r2, %r1; @%p1 bra END;\\n"
    "mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r5, [%rd3];\\n"
    "ld.global.u32 %r6, [factor]; mul.lo.u32 %r5, %r5, %r6; st.global.u32 [%rd3], %r5;\\n"
    "END: ret; }\\n";
struct Start {
    CUdevice device; CUcontext context; CUmodule module; CUfunction scale;
    Start() {
        DO(cuInit(0));
        DO(cuDeviceGet(&device, 0));
        DO(cuCtxCreate(&context, NULL, 0, device));
        DO(cuModuleLoadData(&module, ptx));
        DO(cuModuleGetFunction(&scale, module, "scale"));
    }
};
"""

SCALE = """
int main()
{
    Start s;
    CUdeviceptr data;
    int host[100];
    for (int i = 0; i < 100; i++) host[i] = i;
    DO(cuMemAlloc(&data, sizeof host));
    DO(cuMemcpyHtoD(data, host, sizeof host));
    unsigned n = 100;
    void *arguments[] = {&n, &data};
    DO(cuLaunchKernel(s.scale, 4, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    struct { unsigned n; CUdeviceptr data; } packed = {50, data};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    DO(cuLaunchKernel(s.scale, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    DO(cuMemcpyDtoH(host, data, sizeof host));
    for (int i = 0; i < 100; i++) if (host[i] != (i < 50 ? 4 : 2) * i) return 1;
    DO(cuMemFree(data));
    printf("right\\n");
    return 0;
}
"""


def drive(folder: Path, name: str) -> Done:
    """Record a program of the driver's interface, by its name in lower case."""
    names = ("SCALE", "SHARED", "FORMATS", "ABSENT", "FIRST", "MAPPED", "CURRENT", "GRAPH")
    parts = {each.lower(): globals()[each] for each in (*names, "OBJECTS", "LIBRARY", "TABLES")}
    return record_built(folder, together(HEAD, parts), name, words=["-lcuda"])


def test_a_program_of_the_driver_is_recorded_with_its_arguments(tmp_path: Path) -> None:
    done = drive(tmp_path, "scale")
    assert (done.status, done.out) == (0, "right\n"), done.err
    first, second = (each.launch for each in done.trace.launches)
    assert (first.grid, second.grid) == ((4, 1, 1), (2, 1, 1))
    assert [argument.value for argument in first.arguments] == [100, "data"]
    # one buffer: n at 0, and the address at 8, where 8 bytes may lie
    assert [argument.value for argument in second.arguments] == [50, "data"]


SHARED = """
__global__ void increment(int *data) { data[threadIdx.x] += 1; }
int main()
{
    Start s;
    int *data, host[32] = {}, n = 32;
    CHECK(cudaMalloc(&data, sizeof host));
    DO(cuMemsetD32((CUdeviceptr)data, 20, 32));
    increment<<<1, 32>>>(data);
    CUdeviceptr place = (CUdeviceptr)data, factor;
    size_t bytes;
    int times = 3;
    DO(cuModuleGetGlobal(&factor, &bytes, s.module, "factor"));
    DO(cuMemcpyHtoD(factor, &times, bytes));
    void *arguments[] = {&n, &place};
    DO(cuLaunchKernel(s.scale, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    CUfunction same;
    DO(cuModuleGetFunction(&same, s.module, "scale"));
    printf("%d %d %d\\n", host[31], (int)bytes, same == s.scale);
    int failed = cuMemFree(12345) != CUDA_SUCCESS; /* the runtime's last error is its own */
    printf("%d %s\\n", failed, cudaGetErrorName(cudaGetLastError()));
    return 0;
}
"""


def test_the_driver_and_the_runtime_share_one_device(tmp_path: Path) -> None:
    done = drive(tmp_path, "shared")
    assert (done.status, done.out) == (0, "63 4 1\n1 cudaSuccess\n"), done.err  # (20 + 1) * 3
    assert [each.launch.kernel for each in done.trace.launches] == [
        "_ZN6shared9incrementEPi",
        "scale",
    ]


FORMATS = """
__global__ void read(cudaTextureObject_t texture, float *out)
{
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f);
}
int main()
{
    Start s;
    unsigned char texels[2][4] = {{9, 9, 9, 9}, {0, 51, 102, 255}};
    float host[4], *out;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR form = {4, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1}, told;
    DO(cuArrayCreate(&array, &form));
    DO(cuArrayGetDescriptor(&told, array));
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = texels;
    copy.srcPitch = copy.WidthInBytes = 4;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.Height = 2;
    DO(cuMemcpy2D(&copy));
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC modes = {};
    CUtexObject texture;
    DO(cuTexObjectCreate(&texture, &resource, &modes, NULL));
    CHECK(cudaMalloc(&out, sizeof host));
    read<<<1, 4>>>(texture, out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g %d\\n", host[0], host[1], host[2], host[3],
           told.Width == 4 && told.Height == 2 && told.Format == form.Format);
    DO(cuTexObjectDestroy(texture));
    DO(cuArrayDestroy(array));
    return 0;
}
"""


def test_arrays_and_textures_have_the_driver_s_formats(tmp_path: Path) -> None:
    done = drive(tmp_path, "formats")
    assert (done.status, done.out) == (0, "0 0.2 0.4 1 1\n"), done.err  # 51 / 255, 102 / 255


ABSENT = """
int main()
{
    Start s;
    CUfunction absent;
    CUmodule code;
    CUdeviceptr place;
    void *found;
    CUdriverProcAddressQueryResult outcome;
    unsigned char elf[64] = "\\x7f" "ELF";
    const char *ptx = ".version 8.5\\n.target sm_90\\n.entry k() .maxntid 0 { ret; }";
    cuGetProcAddress("cuMemAlloc", &found, 12000, 0, &outcome);
    printf("%d ", found == (void *)cuMemAlloc);
    cuGetProcAddress("cuNothing", &found, 12000, 0, &outcome);
    printf("%d %d ", found == NULL, outcome);
    printf("%d ", cuModuleGetFunction(&absent, s.module, "absent"));
    printf("%d ", cuModuleLoadData(&code, elf));
    printf("%d ", cuModuleLoadData(&code, ptx));
    printf("%d ", cuMemAlloc(&place, 0));
    printf("%d ", cuCtxPopCurrent(NULL));
    printf("%d ", cuCtxPopCurrent(NULL));
    CUipcMemHandle shared;
    printf("%d\\n", cuIpcGetMemHandle(&shared, 0));
    return 0;
}
"""


def test_what_the_driver_has_not_is_an_error_of_its_own(tmp_path: Path) -> None:
    done = drive(tmp_path, "absent")
    # cuda.h: not found 500, no image 209, invalid PTX 218, invalid value 1, invalid context 201,
    # not supported 801
    assert (done.status, done.out) == (0, "1 1 1 500 209 218 1 0 201 801\n"), done.err
    assert "cutrace: PTX line 3: found `.maxntid 0`, expected positive numbers" in done.err
    assert "cutrace: a module from memory has no kernel `absent`" in done.err
    assert "machine code is cut off or damaged" in done.err
    assert "cuIpcGetMemHandle is not supported; the program gets CUDA_ERROR_NOT_SUPPO" in done.err


def test_a_name_means_what_it_meant_for_the_version_that_a_program_was_written_for() -> None:
    entries, refusals = driver_table(find_toolkit(), functions_of(DRIVER))
    # cudaTypedefs.h: PFN_cuCtxCreate_v3020, _v11040 and _v12050; cuda.h: cuCtxCreate_v4
    for line in (
        "ENTRY(cuCtxCreate_v2, cuCtxCreate, 3020)",
        "ENTRY(cuCtxCreate_v3, cuCtxCreate, 11040)",
        "ENTRY(cuCtxCreate_v4, cuCtxCreate, 12050)",
        "ENTRY(cuMemAdvise, cuMemAdvise, 8000)",
        "ENTRY(cuMemAdvise_v2, cuMemAdvise, 12020)",
        "ENTRY(cuLaunchKernel, cuLaunchKernel, 4000)",
        "ENTRY(cuGraphAddNode, cuGraphAddNode, 12020)",
        "ENTRY(cuGraphAddNode_v2, cuGraphAddNode, 12030)",
        "ENTRY(cuLaunchHostFunc_v2, cuLaunchHostFunc, 13010)",
        "ENTRY(cuGraphInstantiateWithFlags, cuGraphInstantiate, 12000)",
        "ENTRY(cuEventDestroy_v2, cuEventDestroy, 4000)",
        "ENTRY(cuEventDestroy, cuEventDestroy, 0)",  # cuda.tile asks for that of CUDA 2.0
    ):
        assert f"{line}\n" in entries
    assert "int cuMulticastCreate(void)" in refusals
    assert "int cuMemAlloc_v2(void)" not in refusals


def test_a_forward_takes_the_parameters_of_cudas_header() -> None:
    forwards = read_forwards("""# Streams
[driver]
cuStreamQuery = cudaStreamQuery
cuCtxDetach = cuCtxDestroy_v2
cuMemsetD8_v2 =
    cuMemsetD8Async(d, uc, N, NULL)
cuProfilerStop(void) = result(begin())
[runtime]
cudaGraphInstantiate = cudaGraphInstantiateWithFlags
[libraries/cusparse]
cusparseGetVersion = (*version = CUSPARSE_VERSION, OK)
""")
    header = {
        "cuStreamQuery": ("CUresult", "CUstream s"),
        "cuCtxDetach": ("CUresult", "CUcontext ctx"),
        "cuMemsetD8_v2": ("CUresult", "CUdeviceptr d, unsigned char uc, size_t N"),
        "cudaGraphInstantiate": (
            "cudaError_t",
            "cudaGraphExec_t *exec, cudaGraph_t graph, int f[2]",
        ),
        "cusparseGetVersion": ("cusparseStatus_t", "cusparseHandle_t handle, int *version"),
    }
    lines = write_forwards(forwards, header).splitlines()[2:]
    assert lines == [
        'extern cudaError_t to_cuStreamQuery(CUstream s) __asm__("cudaStreamQuery");',
        "API CUresult cuStreamQuery(CUstream s) { return result(to_cuStreamQuery(s)); }",
        'extern CUresult to_cuCtxDetach(CUcontext ctx) __asm__("cuCtxDestroy_v2");',
        "API CUresult cuCtxDetach(CUcontext ctx) { return to_cuCtxDetach(ctx); }",
        "API CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char uc, size_t N) "
        "{ return cuMemsetD8Async(d, uc, N, NULL); }",
        "API CUresult cuProfilerStop(void) { return result(begin()); }",
        "extern cudaError_t to_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, "
        'int f[2]) __asm__("cudaGraphInstantiateWithFlags");',
        "API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, int f[2]) "
        "{ return to_cudaGraphInstantiate(exec, graph, f); }",
        "API cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version) "
        "{ return (*version = CUSPARSE_VERSION, OK); }",
    ]


SINCE_13_1 = """
cudaDevResourceGenerateDesc cudaDevSmResourceSplit cudaDevSmResourceSplitByCount
cudaDeviceGetDevResource cudaDeviceGetExecutionCtx cudaExecutionCtxDestroy
cudaExecutionCtxGetDevResource cudaExecutionCtxGetDevice cudaExecutionCtxGetId
cudaExecutionCtxRecordEvent cudaExecutionCtxStreamCreate cudaExecutionCtxSynchronize
cudaExecutionCtxWaitEvent cudaFuncGetParamCount cudaGraphConditionalHandleCreate_v2
cudaGraphExecGetId cudaGraphGetId cudaGraphNodeGetContainingGraph cudaGraphNodeGetLocalId
cudaGraphNodeGetParams cudaGraphNodeGetToolsId cudaGreenCtxCreate cudaLaunchHostFunc_v2
cudaMemGetLocationInfo cudaMemcpy3DWithAttributesAsync cudaMemcpyWithAttributesAsync
cudaStreamBeginRecaptureToGraph cudaStreamGetDevResource cudaSubgridCreate
"""
"""What libcudart_static.a of 13.5.37 defines and that of 13.0.96 does not (nm)."""


def test_a_forward_that_the_headers_of_cuda_13_0_lack_names_its_parameters() -> None:
    """PyTorch's packages bring these headers, and the library is compiled with them."""
    entries, _ = driver_table(find_toolkit(), functions_of(DRIVER))
    since = {
        name: int(version) for name, version in re.findall(r"ENTRY\((\w+), .*, (\d+)\)", entries)
    }
    listed = [each for each in read_forwards() if not each.parameters]
    of_driver = [each.name for each in listed if each.folder == "driver"]
    assert len(of_driver) > 200
    assert not [name for name in of_driver if since.get(name, 0) > 13000]
    of_runtime = {each.name for each in listed if each.folder == "runtime"}
    assert len(of_runtime) > 100
    assert of_runtime.isdisjoint(SINCE_13_1.split())


def test_no_forward_of_the_driver_is_refused() -> None:
    _, refusals = driver_table(find_toolkit(), functions_of(DRIVER))
    names = [each.name for each in read_forwards() if each.folder == "driver"]
    assert len(names) > 200
    assert not [name for name in names if f'refuse_driver("{name}")' in refusals]


FIRST = """
#include <dlfcn.h>
int main()
{
    Start s;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    auto destroy = (CUresult (*)(CUcontext))dlsym(library, "cuCtxDestroy");
    printf("%d ", destroy ? destroy(s.context) : -1);
    CUcontext now;
    DO(cuCtxGetCurrent(&now));
    printf("%d", now == NULL);
}
"""


def test_names_of_the_drivers_first_version_are_found_in_its_library(tmp_path: Path) -> None:
    done = drive(tmp_path, "first")
    assert (done.status, done.out) == (0, "0 1"), done.err


MAPPED = """
int main()
{
    Start s;
    CUmemAllocationProp wish = {};
    wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t page;
    DO(cuMemGetAllocationGranularity(&page, &wish, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr range, other;
    CUmemGenericAllocationHandle first, second;
    DO(cuMemAddressReserve(&range, 4 * page, 0, 0, 0));
    DO(cuMemAddressReserve(&other, page, 0, 0, 0));
    DO(cuMemCreate(&first, page, &wish, 0));
    DO(cuMemCreate(&second, page, &wish, 0));
    DO(cuMemMap(range, page, 0, first, 0));
    DO(cuMemMap(range + page, page, 0, second, 0));
    CUmemAccessDesc access = {wish.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DO(cuMemSetAccess(range, 2 * page, &access, 1));
    DO(cuMemRelease(second));
    unsigned n = 64, host[64];
    for (unsigned i = 0; i < n; i++) host[i] = i;
    CUdeviceptr data = range + page - 32 * 4; /* half in each page */
    DO(cuMemcpyHtoD(data, host, sizeof host));
    void *arguments[] = {&n, &data};
    DO(cuLaunchKernel(s.scale, 2, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    DO(cuMemUnmap(range, 2 * page));
    printf("%d ", cuMemMap(range + 1, page, 0, first, 0));
    DO(cuMemMap(other, page, 0, first, 0));
    DO(cuMemcpyDtoH(host, other + page - 32 * 4, 128));
    printf("%u %u %u ", host[1], host[31], host[33]);
    printf("%d ", cuMemAddressFree(other, page));
    DO(cuMemUnmap(other, page));
    DO(cuMemRelease(first));
    DO(cuMemAddressFree(other, page));
    data = range;
    cuLaunchKernel(s.scale, 2, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
    printf("%d", cuCtxSynchronize());
}
"""


def test_memory_is_mapped_where_addresses_are_reserved_and_keeps_its_bytes(
    tmp_path: Path,
) -> None:
    done = drive(tmp_path, "mapped")
    # 1: no multiple of a page; twice 1 and 31, and 33 as the host had it; 1: it is still mapped;
    # 700, an illegal address: nothing is mapped there any more
    assert (done.status, done.out) == (0, "1 2 62 33 1 700"), done.err
    assert len(done.trace.launches) == 1


CURRENT = """
int main()
{
    CUcontext before, now, primary;
    DO(cuInit(0));
    DO(cuCtxGetCurrent(&before));
    CHECK(cudaFree(0));
    DO(cuCtxGetCurrent(&now));
    DO(cuDevicePrimaryCtxRetain(&primary, 0));
    printf("%d %d", before == NULL, now == primary);
}
"""


def test_the_runtimes_context_is_current_for_the_driver(tmp_path: Path) -> None:
    done = drive(tmp_path, "current")
    assert (done.status, done.out) == (0, "1 1"), done.err


GRAPH = """
static int called;
static void call(void *data) { called += *(int *)data; }
int main()
{
    Start s;
    CUdeviceptr data;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode set, first, second, host, copy, needs[2], from[8], to[8];
    int out[4], by = 7;
    DO(cuMemAlloc(&data, sizeof out));
    DO(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill = {data, 0, 3, 4, 4, 1};
    DO(cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, s.context));
    unsigned n = 4, two = 2;
    void *all[] = {&n, &data}, *half[] = {&two, &data};
    CUDA_KERNEL_NODE_PARAMS kernel = {s.scale, 1, 1, 1, 32, 1, 1, 0, all, NULL, NULL, NULL};
    DO(cuGraphAddKernelNode(&second, graph, NULL, 0, &kernel));  /* before what it needs */
    kernel.kernelParams = half;
    DO(cuGraphAddKernelNode(&first, graph, &set, 1, &kernel));
    DO(cuGraphAddDependencies(graph, &first, &second, NULL, 1));
    printf("%d ", cuGraphAddDependencies(graph, &first, &second, NULL, 1));
    CUDA_HOST_NODE_PARAMS calls = {call, &by};
    DO(cuGraphAddHostNode(&host, graph, &second, 1, &calls));
    CUDA_MEMCPY3D back = {};
    back.srcMemoryType = CU_MEMORYTYPE_DEVICE; back.srcDevice = data;
    back.dstMemoryType = CU_MEMORYTYPE_HOST; back.dstHost = out;
    back.WidthInBytes = sizeof out; back.Height = back.Depth = 1;
    DO(cuGraphAddMemcpyNode(&copy, graph, &second, 1, &back, s.context));

    size_t edges = 0, count = 2;
    DO(cuGraphGetEdges(graph, NULL, NULL, NULL, &edges));
    DO(cuGraphNodeGetDependentNodes(second, needs, NULL, &count));
    printf("%zu %zu %d ", edges, count, needs[0] == host && needs[1] == copy);
    CUDA_KERNEL_NODE_PARAMS told;
    CUDA_MEMCPY3D told_copy;
    DO(cuGraphKernelNodeGetParams(first, &told));
    DO(cuGraphMemcpyNodeGetParams(copy, &told_copy));
    printf("%d %u %d ", told.func == s.scale, *(unsigned *)told.kernelParams[0],
           told_copy.dstHost == out);
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuCtxSynchronize());
    printf("%d,%d,%d,%d %d ", out[0], out[1], out[2], out[3], called);

    kernel.kernelParams = all;
    DO(cuGraphExecKernelNodeSetParams(exec, first, &kernel));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuCtxSynchronize());
    printf("%d,%d,%d,%d %d ", out[0], out[1], out[2], out[3], called);
    DO(cuGraphDestroyNode(host));
    edges = 8;
    DO(cuGraphGetEdges(graph, from, to, NULL, &edges));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    printf("%zu\\n", edges);
    return 0;
}
"""


def test_graphs_of_nodes_added_one_by_one_run_and_tell_what_they_are(tmp_path: Path) -> None:
    done = drive(tmp_path, "graph")
    # an edge twice: invalid value, 1; edges: set-first, first-second, second-host, second-copy;
    # 3 x 2 x 2 and 3 x 2, then twice all; without the host node 3 edges
    said = "1 4 2 1 1 2 1 12,12,6,6 7 12,12,12,12 14 3\n"
    assert (done.status, done.out) == (0, said), done.err
    assert len(done.trace.launches) == 4


OBJECTS = """
static int ended;
static void end(void *) { ended++; }
int main()
{
    Start s;
    CUgraph graph;
    CUgraphExec exec;
    CUuserObject object;
    DO(cuGraphCreate(&graph, 0));
    DO(cuUserObjectCreate(&object, NULL, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    DO(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphDestroy(graph));
    printf("%d ", ended);
    DO(cuGraphExecDestroy(exec));
    printf("%d\\n", ended);
    return 0;
}
"""


def test_a_graph_gives_back_the_objects_that_it_holds_when_it_ends(tmp_path: Path) -> None:
    done = drive(tmp_path, "objects")
    assert (done.status, done.out) == (0, "0 1\n"), done.err


LIBRARY = """
#include <string.h>
int main()
{
    cudaLibrary_t library;
    cudaKernel_t kernel, listed[2];
    unsigned count = 0, n = 4;
    int *data, host[4] = {1, 2, 3, 4}, three = 3;
    void *factor;
    size_t bytes;
    const char *name;
    if (cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0)) return 1;
    if (cudaLibraryGetKernelCount(&count, library) || count != 1) return 2;
    if (cudaLibraryEnumerateKernels(listed, 2, library)) return 3;
    if (cudaLibraryGetKernel(&kernel, library, "scale") || kernel != listed[0]) return 4;
    if (cudaFuncGetName(&name, kernel) || strcmp(name, "scale")) return 5;
    if (cudaLibraryGetKernel(&kernel, library, "none") != cudaErrorSymbolNotFound) return 6;
    if (cudaLibraryGetGlobal(&factor, &bytes, library, "factor") || bytes != 4) return 7;
    cudaMemcpy(factor, &three, 4, cudaMemcpyDefault);
    cudaMalloc(&data, sizeof host);
    cudaMemcpy(data, host, sizeof host, cudaMemcpyDefault);
    void *arguments[] = {&n, &data};
    if (cudaLaunchKernel((const void *)listed[0], 1, 32, arguments, 0, 0)) return 8;
    cudaMemcpy(host, data, sizeof host, cudaMemcpyDefault);
    for (int i = 0; i < 4; i++) printf("%d ", host[i]);
    CUmodule module;
    CUfunction function;
    DO(cuModuleLoadData(&module, ptx));
    DO(cuModuleGetFunctionCount(&count, module));
    DO(cuModuleEnumerateFunctions(&function, 1, module));
    DO(cuFuncGetName(&name, function));
    printf("%u %s\\n", count, name);
    return cudaLibraryUnload(library);
}
"""


def test_the_runtime_loads_libraries_while_it_runs(tmp_path: Path) -> None:
    done = drive(tmp_path, "library")
    assert (done.status, done.out) == (0, "3 6 9 12 1 scale\n"), done.err
    assert [each.launch.kernel for each in done.trace.launches] == ["scale"]


KEPT = """
import atexit, ctypes, os, pathlib, shutil, sys, tempfile
text = pathlib.Path("scale.ptx").read_text()
cubin = pathlib.Path("scale.cubin").read_bytes()
assert os.environ["CUTE_DSL_KEEP"].split(",")[-1] == "ptx"
os.makedirs(os.environ[sys.argv[1]], exist_ok=True)  # as Warp does
folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ[sys.argv[1]]))
atexit.register(shutil.rmtree, folder)
(folder / "scale.ptx").write_text(text)
(folder / "other.ptx").write_text(text.replace("scale", "other"))
cuda = ctypes.CDLL("libcuda.so.1")
context, library, kernel = (ctypes.c_void_p() for _ in range(3))
cuda.cuInit(0)
cuda.cuCtxCreate_v4(ctypes.byref(context), None, 0, 0)
status = cuda.cuLibraryLoadData(ctypes.byref(library), cubin, None, None, 0, None, None, 0)
print("loaded", status)
if status == 0:
    cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b"scale")
    n, data = ctypes.c_uint(0), ctypes.c_void_p(0)
    pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (n, data)]
    arguments = (ctypes.c_void_p * 2)(*pointers)
    print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None))
"""


@pytest.mark.parametrize("place", ["CUTE_DSL_DUMP_DIR", "WARP_CACHE_PATH"])
def test_machine_code_runs_as_the_ptx_that_its_compiler_kept(tmp_path: Path, place: str) -> None:
    """CuTe DSL and Warp give the driver machine code, and leave its PTX in a folder."""
    text = ast.literal_eval(HEAD.partition("ptx =")[2].partition(";\nstruct")[0].strip().join("()"))
    (tmp_path / "scale.ptx").write_text(text)
    ptxas = find_toolkit().root / "bin" / "ptxas"
    command = (str(ptxas), "-arch=sm_90", "scale.ptx", "-o", "scale.cubin")
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "app.py").write_text(KEPT)
    done = cutrace(tmp_path, "record", "app.py", place, "-d", "h100", "-o", "app.cutrace")
    assert (done.status, done.out) == (0, "loaded 0\n0\n"), done.err
    (launch,) = done.trace.launches
    assert (launch.launch.kernel, launch.launch.code) == ("scale", "")


TABLES = """
struct Table { size_t bytes; int (*functions[63])(void *, void *, void *, void *); };
static const Table *table_of(unsigned char first, unsigned char second)
{
    static const CUuuid all[] = {
        {{0x21, 0x31, char(0x8c), 0x60, char(0x97), 0x14, 0x32, 0x48, char(0x8c), char(0xa6), 0x41,
          char(0xff), 0x73, 0x24, char(0xc8), char(0xf2)}},
        {{0x6e, 0x16, 0x3f, char(0xbe), char(0xb9), 0x58, 0x44, 0x4d, char(0x83), 0x5c, char(0xe1),
          char(0x82), char(0xaf), char(0xf1), char(0x99), 0x1e}}};
    const void *table = NULL;
    for (const CUuuid &each : all)
        if ((unsigned char)each.bytes[0] == first && (unsigned char)each.bytes[1] == second)
            DO(cuGetExportTable(&table, &each));
    return (const Table *)table;
}
static void keep(void *into, void *function) { *(void **)into = function; }
int main()
{
    Start s;
    CUcontext number = NULL;
    CUfunction found = NULL;
    table_of(0x21, 0x31)->functions[3](s.context, &number, NULL, NULL);
    const Table *modules = table_of(0x6e, 0x16);
    int visited = modules->functions[6](s.context, s.module, (void *)keep, &found);
    CUdeviceptr data;
    DO(cuMemAlloc(&data, 400));
    DO(cuMemsetD32(data, 3, 100));
    unsigned n = 100;
    void *arguments[] = {&n, &data};
    DO(cuLaunchKernel(found, 4, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    int last, refused = modules->functions[11](NULL, NULL, NULL, NULL);
    DO(cuMemcpyDtoH(&last, data + 396, 4));
    printf("%d %d %d %d\\n", number != NULL, visited, last, refused);
}
"""


def test_a_library_finds_the_kernels_of_a_module_as_cufft_does(tmp_path: Path) -> None:
    done = drive(tmp_path, "tables")
    assert done.out == "1 1 6 801\n", done.err  # 3 * factor; cudaErrorNotSupported
    assert "function 12 of a table that NVIDIA does not document" in done.err
    assert len(done.trace.launches) == 1

"""Streams, events and graphs of a program: its launches in the order in which they run."""

from pathlib import Path

import pytest
from program_run import Done, record, record_built, together

SOURCE = """
__global__ void add(int *x, int n) { *x += n; }
__global__ void times(int *x, int n) { *x *= n; }
static void told(void *number) { printf("told %d\\n", *(int *)number); }

int main()
{
    int *d, host = 0, five = 5, three = 3;
    cudaStream_t one, two;
    cudaEvent_t start, end;
    CHECK(cudaMalloc(&d, 4));
    CHECK(cudaStreamCreate(&one));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));

    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(d, &five, 4, cudaMemcpyHostToDevice, one));
    add<<<1, 1, 0, one>>>(d, 2);
    CHECK(cudaEventRecord(start, one));
    CHECK(cudaStreamWaitEvent(two, start, 0));
    times<<<1, 1, 0, two>>>(d, 10);
    CHECK(cudaEventRecord(end, two));
    CHECK(cudaStreamWaitEvent(one, end, 0));
    CHECK(cudaLaunchHostFunc(one, told, &three));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(one, &graph));
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    size_t nodes;
    CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
    printf("captured %d %d\\n", host, (int)nodes);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, one));
    five = 6;
    CHECK(cudaGraphLaunch(exec, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    printf("ran %d\\n", host);

    cudaGraph_t own;
    cudaGraphNode_t first, last;
    int four = 4;
    void *adds[] = {&d, &four}, *multiplies[] = {&d, &three};
    cudaKernelNodeParams a = {(void *)add, 1, 1, 0, adds, NULL};
    cudaKernelNodeParams m = {(void *)times, 1, 1, 0, multiplies, NULL};
    CHECK(cudaGraphCreate(&own, 0));
    CHECK(cudaGraphAddKernelNode(&last, own, NULL, 0, &m));
    CHECK(cudaGraphAddKernelNode(&first, own, NULL, 0, &a));
    CHECK(cudaGraphAddDependencies(own, &first, &last, NULL, 1));
    four = 1000;
    CHECK(cudaGraphInstantiate(&exec, own, 0));
    CHECK(cudaMemset(d, 0, 4));
    CHECK(cudaEventRecord(start));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float elapsed = 0;
    CHECK(cudaEventElapsedTime(&elapsed, start, end));
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    printf("added first %d %d\\n", host, elapsed > 0);
}
"""


def run(folder: Path, name: str) -> Done:
    """Record one of the programs, which are built as one."""
    parts = {"order": SOURCE, "memory": MEMORY, "changed": CHANGED, "waits": WAITS}
    return record_built(folder, together("", parts), name, words=["-lcuda"])


def test_graphs_run_what_was_captured_or_added_in_order(tmp_path: Path) -> None:
    done = run(tmp_path, "order")
    # nodes: copy, kernel, kernel, call; an event is one with cudaEventRecordExternal alone (CUDA's
    # driver_types.h); (5 + 2) * 10, then (6 + 2) * 10; (0 + 4) * 3
    expected = "captured 0 4\ntold 3\ntold 3\nran 80\nadded first 12 1\n"
    assert done.out == expected, done.err
    kernels = [launch.launch.signature.partition("(")[0] for launch in done.trace.launches]
    assert kernels == ["order::add", "order::times"] * 3


MEMORY = """
__global__ void add(int *into, const int *from, int n)
{
    if (threadIdx.x < n) into[threadIdx.x] += from[threadIdx.x] + 1;
}

int main()
{
    int *sums, host[32] = {};
    CHECK(cudaMalloc(&sums, sizeof host));
    CHECK(cudaMemset(sums, 0, sizeof host));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));

    // captured: sums += scratch + 1, where scratch is 0
    int *scratch;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&scratch, sizeof host, stream));
    CHECK(cudaMemsetAsync(scratch, 0, sizeof host, stream));
    add<<<1, 32, 0, stream>>>(sums, scratch, 32);
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaFreeAsync(scratch, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaEventDestroy(event));
    size_t nodes;
    CHECK(cudaGraphGetNodes(graph, 0, &nodes));
    if (nodes != 4) return 1;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream));

    // added node by node; freed by the program, and launched again
    cudaGraph_t other;
    cudaGraphNode_t taken, launched;
    CHECK(cudaGraphCreate(&other, 0));
    cudaMemAllocNodeParams wanted = {};
    wanted.bytesize = sizeof host;
    CHECK(cudaGraphAddMemAllocNode(&taken, other, 0, 0, &wanted));
    int n = 32;
    void *arguments[] = {&wanted.dptr, &sums, &n};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1), kernel.blockDim = dim3(32);
    kernel.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&launched, other, &taken, 1, &kernel));
    CHECK(cudaGraphInstantiate(&exec, other, 0));
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaFreeAsync(wanted.dptr, stream));
    }
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(taken, &type));
    unsigned long long used = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
    CHECK(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d ", host[0], host[31]);
    CHECK(cudaMemcpy(host, wanted.dptr, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d %llu", host[31], type == cudaGraphNodeTypeMemAlloc, used);
}
"""


def test_graphs_allocate_memory_that_keeps_its_address(tmp_path: Path) -> None:
    done = run(tmp_path, "memory")
    # 3 launches add 1 each; 2 launches add the sums, 3, and 1 each; two pieces of 128 bytes
    assert (done.status, done.out) == (0, "3 3 8 1 256"), done.err
    assert len(done.trace.launches) == 5


CONDITIONAL = """
__global__ void start(int *x, cudaGraphConditionalHandle often, cudaGraphConditionalHandle which)
{
    cudaGraphSetConditional(often, *x > 0);
    cudaGraphSetConditional(which, 1);
}
__global__ void count_down(int *x, cudaGraphConditionalHandle often)
{
    cudaGraphSetConditional(often, --*x > 0);
}
__global__ void add(int *sum, int n) { *sum += n; }
__global__ void rest() {}

int main()
{
    int *x, *sum, one = 1, ten = 10, hundred = 100;
    CHECK(cudaMallocManaged(&x, 4));
    CHECK(cudaMallocManaged(&sum, 4));
    cudaGraph_t graph;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle often, which, once;
    CHECK(cudaGraphConditionalHandleCreate(&often, graph));
    CHECK(cudaGraphConditionalHandleCreate(&which, graph));
    CHECK(cudaGraphConditionalHandleCreate(&once, graph, 0, cudaGraphCondAssignDefault));

    void *arguments[] = {&x, &often, &which};
    cudaKernelNodeParams begin = {(void *)start, 1, 1, 0, arguments, NULL};
    cudaGraphNode_t first, loop, choice, last;
    CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &begin));
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = often;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    CHECK(cudaGraphAddNode(&loop, graph, &first, NULL, 1, &params));
    CHECK(cudaStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                        cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(sum, one);
    count_down<<<1, 1, 0, stream>>>(x, often);
    CHECK(cudaStreamEndCapture(stream, NULL));

    params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = which;
    params.conditional.type = cudaGraphCondTypeSwitch;
    params.conditional.size = 2;
    CHECK(cudaGraphAddNode(&choice, graph, &loop, NULL, 1, &params));
    void *adds[] = {&sum, &ten}, *more[] = {&sum, &hundred};
    cudaKernelNodeParams a = {(void *)add, 1, 1, 0, adds, NULL};
    cudaKernelNodeParams b = {(void *)add, 1, 1, 0, more, NULL};
    CHECK(cudaGraphAddKernelNode(&last, params.conditional.phGraph_out[0], NULL, 0, &a));
    CHECK(cudaGraphAddKernelNode(&last, params.conditional.phGraph_out[1], NULL, 0, &b));

    params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = once;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 2;
    CHECK(cudaGraphAddNode(&last, graph, &choice, NULL, 1, &params));
    ten = 1000;
    CHECK(cudaGraphAddKernelNode(&first, params.conditional.phGraph_out[1], NULL, 0, &a));

    cudaKernelNodeParams nothing = {(void *)rest, 1, 1, 0, NULL, NULL};
    CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &nothing));
    a.kernelParams = NULL;
    printf("%d ", cudaGraphAddKernelNode(&first, graph, NULL, 0, &a));

    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int times : {3, 0}) {
        *x = times;
        *sum = 0;
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        printf("%d ", *sum);
    }
}
"""


def test_conditional_nodes_run_their_graphs_as_kernels_say(tmp_path: Path) -> None:
    done = record(tmp_path, CONDITIONAL, options=("--nvcc-flags=-rdc=true",))
    # parameters missing; 3 turns of 1, the second of two graphs, and `else`; then no turn
    assert (done.status, done.out) == (0, "1 1103 1100 "), done.err
    # start, 3 times add and count_down, twice add, rest; then start, twice add, rest
    assert len(done.trace.launches) == 10 + 4


CHANGED = """
static void add(void *to) { ++*(int *)to; }
int main()
{
    int *x, first = 3, second = 5, calls = 0, others = 0;
    CHECK(cudaMallocManaged(&x, 4 * sizeof *x));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t copy, set, call;
    cudaMemsetParams bytes = {x + 1, 4, 1, 4, 1, 1};
    cudaHostNodeParams told = {add, &calls};
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, 0, 0, x, &first, 4, cudaMemcpyHostToDevice));
    CHECK(cudaGraphAddMemsetNode(&set, graph, 0, 0, &bytes));
    CHECK(cudaGraphAddHostNode(&call, graph, 0, 0, &told));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, x + 2, &second, 4, cudaMemcpyDefault));
    bytes.value = 2;
    CHECK(cudaGraphExecMemsetNodeSetParams(exec, set, &bytes));
    told.userData = &others;
    CHECK(cudaGraphExecHostNodeSetParams(exec, call, &told));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    bytes.value = 7;
    CHECK(cudaGraphMemsetNodeSetParams(set, &bytes));  // that of the graph: exec keeps its own
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    printf("%d %d %d %d %d", x[0], x[1], x[2], calls, others);
}
"""


def test_nodes_of_an_executable_graph_are_changed_alone(tmp_path: Path) -> None:
    done = run(tmp_path, "changed")
    assert (done.status, done.out) == (0, "3 2 5 1 2"), done.err


WAITS = r"""
#include <cuda.h>
#include <thread>
#include <unistd.h>
__global__ void add(int *x, int n) { *x += n; }
__global__ void scale(int *x, int n) { *x *= n; }
#define DO(call) do { int did = (call); if (did) { printf("line %d: %d\n", __LINE__, did); \
    exit(9); } } while (0)
int main() {
    int *x, *host; cudaStream_t a, b, c; cudaEvent_t after; CUdeviceptr flag;
    CHECK(cudaMalloc(&x, 64)); CHECK(cudaMemset(x, 0, 64)); CHECK(cudaMallocHost(&host, 64));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking)); CHECK(cudaEventCreate(&after));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    flag = (CUdeviceptr)(x + 4);
    DO(cuStreamWaitValue32(b, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
    add<<<1, 1, 0, b>>>(x, 5); CHECK(cudaEventRecord(after, b));
    CHECK(cudaStreamWaitEvent(c, after)); scale<<<1, 1, 0, c>>>(x, 10);
    CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    printf("%d %d %d\n", *host, cudaStreamQuery(b) == cudaErrorNotReady,
           cudaEventQuery(after) == cudaErrorNotReady);
    DO(cuStreamWriteValue32(a, flag, 6, 0)); printf("%d\n", cudaStreamQuery(c) != cudaSuccess);
    DO(cuStreamWriteValue32(a, flag, 7, 0));
    CHECK(cudaStreamSynchronize(c)); CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    printf("%d\n", *host);
    volatile int *ready = host + 1; *ready = 0;
    DO(cuStreamWaitValue32(b, (CUdeviceptr)ready, 3, CU_STREAM_WAIT_VALUE_GEQ));
    add<<<1, 1, 0, b>>>(x, 1);
    std::thread later([=] { usleep(100000); *ready = 4; });
    CHECK(cudaStreamSynchronize(b)); later.join();
    DO(cuStreamWriteValue64(b, flag + 8, 1ull << 40, 0));
    CUstreamBatchMemOpParams all[2] = {};
    all[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64; all[0].waitValue.address = flag + 8;
    all[0].waitValue.value64 = 3ull << 40; all[0].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
    all[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32; all[1].writeValue.address = flag;
    all[1].writeValue.value = 9; DO(cuStreamBatchMemOp(a, 2, all, 0));
    CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host, x, 32, cudaMemcpyDeviceToHost));
    printf("%d %d\n", host[0], host[4]);
}
"""


@pytest.mark.slow
def test_what_waits_for_a_value_runs_when_it_is_written(tmp_path: Path) -> None:
    done = run(tmp_path, "waits")
    assert (done.status, done.out) == (0, "0 1 1\n1\n50\n51 9\n"), done.err
    names = [launch.launch.kernel for launch in done.trace.launches]
    assert names == ["_ZN5waits3addEPii", "_ZN5waits5scaleEPii", "_ZN5waits3addEPii"]

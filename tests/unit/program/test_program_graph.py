"""Streams, events and graphs of a program: its launches in the order in which they run."""

from pathlib import Path

from program_run import record

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


def test_graphs_run_what_was_captured_or_added_in_order(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE)
    # nodes: copy, kernel, event, kernel, event, call; (5 + 2) * 10, then (6 + 2) * 10; (0 + 4) * 3
    expected = "captured 0 6\ntold 3\ntold 3\nran 80\nadded first 12 1\n"
    assert done.out == expected, done.err
    kernels = [launch.launch.signature.partition("(")[0] for launch in done.trace.launches]
    assert kernels == ["add", "times", "add", "times", "add", "times"]

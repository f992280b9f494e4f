"""Every kind of memory that a program may ask of CUDA's runtime."""

from pathlib import Path

from program_run import record

SOURCE = """
__constant__ int table[4];
__device__ int counter = 5;
__managed__ int shared_by_both = 7;

__global__ void scale(int *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= table[i % 4]; }
__global__ void count(int *also) { counter += 1; shared_by_both += 10; *also = counter; }
__global__ void add_rows(int *x, size_t pitch)
{
    int *row = (int *)((char *)x + blockIdx.x * pitch);
    row[threadIdx.x] += 100 * blockIdx.x;
}

static void symbols()
{
    int values[4] = {1, 2, 3, 4}, back[4], *d, host[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    CHECK(cudaMemcpyToSymbol(table, values, sizeof values));
    CHECK(cudaMalloc(&d, sizeof host));
    CHECK(cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice));
    scale<<<1, 8>>>(d, 8);
    CHECK(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(back, table, sizeof back));
    printf("symbols %d %d %d\\n", host[3], host[6], back[2]);
    CHECK(cudaFree(d));
}

static void host_memory()
{
    int *pinned, *on_device, own[4] = {0, 0, 0, 0};
    CHECK(cudaHostAlloc(&pinned, 64, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&on_device, pinned, 0));
    count<<<1, 1>>>(on_device);
    CHECK(cudaDeviceSynchronize());
    int now;
    CHECK(cudaMemcpyFromSymbol(&now, counter, sizeof now));
    printf("host %d %d %d\\n", pinned[0], now, shared_by_both);
    CHECK(cudaFreeHost(pinned));
    int *mine = (int *)aligned_alloc(4096, 4096);
    mine[5] = 55;
    CHECK(cudaHostRegister(mine, 4096, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&on_device, mine, 0));
    count<<<1, 1>>>(on_device);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(mine));
    printf("registered %d %d\\n", mine[0], mine[5]);
    (void)own;
}

static void rows()
{
    int host[3][5], *d;
    size_t pitch;
    for (int i = 0; i < 15; i++) host[i / 5][i % 5] = i;
    CHECK(cudaMallocPitch(&d, &pitch, 5 * sizeof(int), 3));
    CHECK(cudaMemcpy2D(d, pitch, host, 20, 20, 3, cudaMemcpyHostToDevice));
    add_rows<<<3, 5>>>(d, pitch);
    CHECK(cudaMemcpy2D(host, 20, d, pitch, 20, 3, cudaMemcpyDeviceToHost));
    printf("rows %d %d %d\\n", pitch % 256 == 0, host[1][0], host[2][4]);
    CHECK(cudaMemset2D(d, pitch, 0, 8, 3));
    CHECK(cudaMemcpy2D(host, 20, d, pitch, 20, 3, cudaMemcpyDeviceToHost));
    printf("set %d %d %d\\n", host[2][0], host[2][1], host[2][2]);
    cudaPitchedPtr box;
    CHECK(cudaMalloc3D(&box, make_cudaExtent(20, 3, 2)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host, 20, 20, 3);
    copy.dstPtr = box;
    copy.extent = make_cudaExtent(20, 3, 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    int back;
    CHECK(cudaMemcpy(&back, (char *)box.ptr + box.pitch, 4, cudaMemcpyDefault));
    printf("box %d\\n", back == host[1][0]);
}

static void pools()
{
    int *d, host = 3, again;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocAsync(&d, 4096, stream));
    CHECK(cudaMemcpyAsync(d, &host, 4, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(&again, d, 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(d, stream));
    CHECK(cudaStreamSynchronize(stream));
    int *fresh;
    CHECK(cudaMalloc(&fresh, 4096));
    CHECK(cudaMemcpy(&host, fresh, 4, cudaMemcpyDeviceToHost));
    printf("pools %d %d %d\\n", again, fresh == d, host);
    int *managed;
    CHECK(cudaMallocManaged(&managed, 64));
    managed[3] = 4;
    cudaPointerAttributes what;
    CHECK(cudaPointerGetAttributes(&what, managed + 3));
    printf("managed %d\\n", what.type == cudaMemoryTypeManaged);
}

int main()
{
    symbols();
    host_memory();
    rows();
    pools();
    printf("past %s\\n", cudaGetErrorName(cudaMemcpy(0, "a", 1, cudaMemcpyHostToDevice)));
    void *huge;
    printf("huge %s\\n", cudaGetErrorName(cudaMalloc(&huge, 1ull << 44)));
}
"""

PRINTED = """\
symbols 4 3 3
host 6 6 17
registered 7 55
rows 1 105 214
set 0 0 212
box 1
pools 3 1 0
managed 1
past cudaErrorInvalidValue
huge cudaErrorMemoryAllocation
"""


def test_memory_of_every_kind_is_the_program_s_and_the_kernels(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE)
    assert done.out == PRINTED, done.err
    assert done.status == 0
    names = [launch.launch.kernel for launch in done.trace.launches]
    assert len(names) == 4
    arrays = {array.name for array in done.trace.launches[0].launch.arrays}
    assert {"table", "counter", "shared_by_both", "x"} <= arrays


BEFORE = """
__global__ void shift(float *out, const float *in) { out[threadIdx.x] = in[(int)threadIdx.x - 64]; }

int main()
{
    float *in, *out, host[64];
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMemset(in, 1, sizeof host));
    CHECK(cudaMemset(out, 1, sizeof host));
    shift<<<1, 64>>>(out, in);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    printf("%g %g\\n", host[0], host[63]);
}
"""


def test_a_load_before_the_first_array_is_told_and_is_no_fault(tmp_path: Path) -> None:
    done = record(tmp_path, BEFORE)
    assert (done.status, done.out.splitlines()[:1]) == (0, ["0 0"]), done.err
    assert done.err.count("reads 4 bytes outside of every array, 64 times; first") == 1
    assert "256 bytes before" in done.err
    (outside,) = done.trace.launches[0].launch.outside
    assert (outside.lanes, outside.block, outside.thread) == (64, 0, 0)


def test_advice_about_managed_memory_is_told_again(tmp_path: Path) -> None:
    source = """
    #include <cstdio>
    static char *data;
    static int ask(cudaMemRangeAttribute which, size_t from, size_t bytes)
    {
        int value = -7;
        cudaMemRangeGetAttribute(&value, 4, which, data + from, bytes);
        return value;
    }
    int main()
    {
        cudaMemLocation device = {cudaMemLocationTypeDevice, {0}};
        cudaMemLocation host = {cudaMemLocationTypeHost, {0}};
        cudaMallocManaged(&data, 1000);
        int users[3];
        printf("%d %d ", ask(cudaMemRangeAttributeReadMostly, 0, 1000),
               ask(cudaMemRangeAttributePreferredLocation, 0, 1000));
        cudaMemAdvise(data, 500, cudaMemAdviseSetReadMostly, device);
        cudaMemAdvise(data, 1000, cudaMemAdviseSetPreferredLocation, host);
        cudaMemAdvise(data, 1000, cudaMemAdviseSetAccessedBy, device);
        cudaMemPrefetchAsync(data, 1000, device, 0, 0);
        printf("%d %d ", ask(cudaMemRangeAttributeReadMostly, 100, 400),
               ask(cudaMemRangeAttributeReadMostly, 0, 1000));
        printf("%d %d ", ask(cudaMemRangeAttributePreferredLocation, 0, 1000),
               ask(cudaMemRangeAttributeLastPrefetchLocation, 0, 1000));
        cudaMemRangeGetAttribute(users, sizeof users, cudaMemRangeAttributeAccessedBy, data, 1000);
        printf("%d,%d,%d ", users[0], users[1], users[2]);
        cudaMemAdvise(data, 1000, cudaMemAdviseUnsetReadMostly, device);
        printf("%d\\n", ask(cudaMemRangeAttributeReadMostly, 100, 400));
        return 0;
    }
    """
    done = record(tmp_path, source)
    # -1 is the host, -2 no device (cudaCpuDeviceId, cudaInvalidDeviceId)
    assert (done.status, done.out) == (0, "0 -2 1 0 -1 0 0,-2,-2 0\n"), done.err

"""Every kind of memory that a program may ask of CUDA's runtime."""

from pathlib import Path

from program_run import record

SOURCE = """
__constant__ int table[4];
__device__ int counter = 5;
__managed__ int shared_by_both = 7;

__global__ void scale(int *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= table[i % 4]; }
__global__ void count(int *also) { counter += 1; shared_by_both += 10; *also = counter; }
struct Pair { int n; int *to; const int *from; };
__global__ void add_pair(Pair p) { int i = threadIdx.x; if (i < p.n) p.to[i] += p.from[i]; }
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
    int can, *odd = (int *)malloc(8000) + 5; // in the midst of a page
    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCanUseHostPointerForRegisteredMem, 0));
    for (int i = 0; i < 1000; i++) odd[i] = i;
    CHECK(cudaHostRegister(odd, 4000, cudaHostRegisterDefault));
    scale<<<1, 8>>>(odd + 100, 8);
    add_pair<<<1, 8>>>(Pair{7, odd, odd + 200});
    CHECK(cudaMemset(odd + 99, 0, 4));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(odd));
    printf("by its own pointer %d %d %d %d\\n", can, odd[3] - 3, odd[99], odd[107] / 107);
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
by its own pointer 1 203 0 4
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
    assert len(names) == 6
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


ALIGNED = """
typedef unsigned long long Address;
static Address bits(void *p) { return (Address)p & -(Address)p; }
static void take(int how, size_t bytes, Address *least)
{
    void *small, *p = NULL;
    size_t pitch;
    cudaPitchedPtr box = {};
    CHECK(cudaMalloc(&small, 8));
    if (how == 0) CHECK(cudaMalloc(&p, bytes));
    if (how == 1) CHECK(cudaMallocManaged(&p, bytes));
    if (how == 2) CHECK((cudaError_t)cuMemAlloc((CUdeviceptr *)&p, bytes));
    if (how == 3) CHECK(cudaMallocPitch(&p, &pitch, bytes / 64 + !(bytes / 64), 64));
    if (how == 4) CHECK(cudaMalloc3D(&box, make_cudaExtent(bytes / 64 + !(bytes / 64), 8, 8)));
    if (how == 4) p = box.ptr;
    if (how == 5) CHECK(cudaMallocAsync(&p, bytes, 0));
    if (how == 6) CHECK(cudaMallocHost(&p, bytes));
    Address a = (Address)p, region = 32 << 20, page = 2 << 20;
    if (bits(p) < *least) *least = bits(p);
    Address unit = bytes <= page / 2 ? page : region;
    if (how != 5 && bytes <= unit && a / unit != (a + bytes - 1) / unit) printf("crosses ");
}
int main()
{
    for (int how = 0; how < 7; how++) {
        Address small = ~0ull, large = ~0ull, larger = ~0ull;
        for (size_t bytes : {8, 512, 1000, 65536, 786432, 1048576}) take(how, bytes, &small);
        for (size_t bytes : {1048640, 2097152, 3145728, 17 << 20}) take(how, bytes, &large);
        for (size_t bytes : {33 << 20, 64 << 20, 174104576}) take(how, bytes, &larger);
        printf("%d:%llu %llu %llu\\n", how, small, large >> 20, larger >> 20);
    }
}
"""


def test_allocations_are_aligned_as_on_a_chip(tmp_path: Path) -> None:
    done = record(tmp_path, "#include <cuda.h>\n" + ALIGNED, options=("-d", "h200"))
    # measured on an H200 (driver 580): multiples of 512 bytes up to 1 MB, of 2 MB from there to
    # 32 MB, of 32 MB from there on; pools know no pages
    lines = done.out.splitlines()
    assert done.status == 0, done.err
    for line in (each for each in lines if not each.startswith("5")):
        numbers = [int(word) for word in line.partition(":")[2].split()]
        assert numbers[0] >= 512, line
        assert numbers[1] >= 2, line
        assert numbers[2] >= 32, line
    assert len(lines) == 7
    assert lines[5] == "5:512 0 0"


HOSTILE = """
typedef size_t Z;
static const Z sizes[] = {(Z)-1, (Z)-4, (Z)-4096, (Z)1 << 63, (Z)3 << 62, (Z)-1 / 3 * 2};
static char *d, *h;
static cudaArray_t array;
static int is_wrong(const char *name, Z size, int status, int wanted)
{
    if (status != wanted && status != cudaErrorInvalidPitchValue)
        printf("%s of %zx: %d\\n", name, size, status);
    return cudaGetLastError(), 0;
}
#define TRY(wanted, call) is_wrong(#call, v, call, wanted);
static cudaMemcpy3DParms box(Z width, Z rows, Z slices, Z pitch, Z height, Z x, Z y, Z z)
{
    cudaMemcpy3DParms p = {};
    p.dstPtr = make_cudaPitchedPtr(d, pitch, 64, height);
    p.srcPtr = make_cudaPitchedPtr(h, 64, 64, 4);
    p.dstPos = make_cudaPos(x, y, z);
    p.extent = make_cudaExtent(width, rows, slices);
    p.kind = cudaMemcpyHostToDevice;
    return p;
}
static int copy(cudaMemcpy3DParms p) { return cudaMemcpy3D(&p); }
__device__ char symbol[64];
int main()
{
    const cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    cudaGraph_t graph;
    cudaGraphNode_t node;
    void *p;
    Z pitch;
    cudaPitchedPtr whole;
    cudaArray_t made;
    h = (char *)calloc(4096, 1);
    CHECK(cudaMalloc(&d, 4096));
    CHECK(cudaMallocArray(&array, &f, 16, 4));
    CHECK(cudaGraphCreate(&graph, 0));
    CUdeviceptr u = (CUdeviceptr)d;
    for (Z v : sizes) {
        TRY(1, cudaMemset(d, 0, v))
        TRY(1, cudaMemset2D(d, v, 0, 16, 3)) TRY(1, cudaMemset2D(d, 64, 0, v, 3))
        TRY(1, cudaMemset2D(d, 64, 0, 16, v)) TRY(1, cudaMemset2D(d, 0, 0, 16, v))
        TRY(1, cudaMemset3D(make_cudaPitchedPtr(d, 64, 64, v), 0, make_cudaExtent(8, 2, 2)))
        TRY(1, cudaMemset3D(make_cudaPitchedPtr(d, 64, 64, 4), 0, make_cudaExtent(8, 2, v)))
        TRY(1, cudaMemset3D(make_cudaPitchedPtr(d, 64, 64, 0), 0, make_cudaExtent(8, 2, v)))
        TRY(1, cudaMemcpy(d, h, v, up)) TRY(1, cudaMemcpy(h, d, v, down))
        TRY(1, cudaMemcpy(d, d + 8, v, cudaMemcpyDeviceToDevice))
        TRY(1, cudaMemcpy(h + 8, h, v, cudaMemcpyHostToHost))
        TRY(1, cudaMemcpy2D(d, v, h, 64, 16, 3, up)) TRY(1, cudaMemcpy2D(d, 64, h, v, 16, 3, up))
        TRY(1, cudaMemcpy2D(d, 64, h, 64, 16, v, up)) TRY(1, cudaMemcpy2D(d, v, h, v, v, v, up))
        TRY(1, cudaMemcpy2DToArray(array, v, 0, h, 64, 16, 2, up))
        TRY(1, cudaMemcpy2DToArray(array, 0, v, h, 64, 16, 2, up))
        TRY(1, cudaMemcpy2DFromArray(h, 64, array, 0, 0, v, 2, down))
        TRY(1, cudaMemcpy2DFromArray(h, 64, array, 8, 2, 16, v, down))
        TRY(1, copy(box(v, 2, 2, 64, 4, 0, 0, 0))) TRY(1, copy(box(8, v, 2, 64, 4, 0, 0, 0)))
        TRY(1, copy(box(8, 2, v, 64, 4, 0, 0, 0))) TRY(1, copy(box(8, 2, 2, v, 4, 0, 0, 0)))
        TRY(1, copy(box(8, 2, 2, 64, v, 0, 0, 0))) TRY(1, copy(box(8, 2, 2, 64, 4, v, 0, 0)))
        TRY(1, copy(box(8, 2, 2, 64, 4, 0, v, 0))) TRY(1, copy(box(8, 2, 2, 64, 4, 0, 0, v)))
        TRY(1, cudaMemcpyToSymbol(symbol, h, v, 0)) TRY(1, cudaMemcpyToSymbol(symbol, h, 8, v))
        TRY(1, cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, d, h, v, up))
        TRY(2, cudaMalloc(&p, v)) TRY(2, cudaMallocAsync(&p, v, 0)) TRY(2, cudaMallocHost(&p, v))
        TRY(2, cudaMallocManaged(&p, v)) TRY((Z)h + v < v ? 1 : 801, cudaHostRegister(h, v, 0))
        TRY(1, cudaMallocArray(&made, &f, v, 4)) TRY(1, cudaMallocArray(&made, &f, 4, v))
        TRY(1, cudaMalloc3DArray(&made, &f, make_cudaExtent(4, 4, v)))
        if (!cudaMallocPitch(&p, &pitch, v, 4) || !cudaMallocPitch(&p, &pitch, 64, v))
            printf("cudaMallocPitch of %zx\\n", v);
        if (!cudaMalloc3D(&whole, make_cudaExtent(64, v, 2))) printf("cudaMalloc3D of %zx\\n", v);
        cudaGetLastError();
        TRY(1, cuMemsetD32(u, 1, v)) TRY(1, cuMemsetD16(u, 1, v)) TRY(1, cuMemsetD8(u, 1, v))
        TRY(1, cuMemsetD2D32(u, v, 1, 4, 3)) TRY(1, cuMemsetD2D32(u, 64, 1, v, 3))
        TRY(1, cuMemcpyHtoD(u, h, v)) TRY(1, cuMemcpyDtoH(h, u, v)) TRY(1, cuMemcpy(u, u + 8, v))
        CUDA_MEMCPY2D flat = {};
        flat.srcMemoryType = CU_MEMORYTYPE_HOST, flat.srcHost = h, flat.srcPitch = 64;
        flat.dstMemoryType = CU_MEMORYTYPE_DEVICE, flat.dstDevice = u, flat.dstPitch = 64;
        flat.WidthInBytes = 16, flat.Height = 2, flat.dstY = v;
        TRY(1, cuMemcpy2D(&flat))
        flat.dstY = 0, flat.srcXInBytes = v;
        TRY(1, cuMemcpy2D(&flat))
        flat.srcXInBytes = 0, flat.dstPitch = v;
        TRY(1, cuMemcpy2D(&flat))
    }
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def test_sizes_that_wrap_are_refused_by_every_copy_set_and_allocation(tmp_path: Path) -> None:
    done = record(tmp_path, "#include <cuda.h>\n" + HOSTILE)
    assert (done.status, done.out) == (0, "cudaSuccess"), done.err

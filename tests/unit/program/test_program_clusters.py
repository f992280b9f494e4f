"""What programs ask about clusters before they launch them, and what they prefer of L1."""

from pathlib import Path

from program_run import record

import cutrace

APP = """
__global__ void wide() { extern __shared__ int held[]; held[threadIdx.x] = 1; }
static cudaLaunchAttribute of;
static int ask(unsigned size)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = 64;
    config.blockDim = 128;
    config.dynamicSmemBytes = 200 << 10;  // one block an SM
    config.attrs = &of;
    config.numAttrs = 1;
    of.id = cudaLaunchAttributeClusterDimension;
    of.val.clusterDim = {size, 1, 1};
    int count = 0, error = cudaOccupancyMaxActiveClusters(&count, wide, &config);
    if (size == 1) CHECK(cudaOccupancyMaxPotentialClusterSize(&count, wide, &config));
    return error ? -error : count;
}
int main()
{
    CHECK(cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    printf("%d %d %d %d %d; ", ask(1), ask(2), ask(4), ask(8), ask(16));
    CHECK(cudaFuncSetAttribute(wide, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    size_t shared;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, wide, 2, 128));
    printf("%d %d; %zu", ask(1), ask(16), shared);
}
"""


def test_clusters_lie_in_gpcs(tmp_path: Path) -> None:
    done = record(tmp_path, APP, options=["-d", "h200"])
    # launch__cluster_max_active of an H200 and two H100 is 66, 30 and 15; a sixteen has place in 7
    # of 8 GPCs; more than 8 blocks a cluster are refused (912) until they are allowed
    shared = 228 * 1024 // 2 - 1024  # two blocks in an SM, 1 KB of each is CUDA's own
    assert (done.status, done.out) == (0, f"8 66 30 15 -912; 16 7; {shared}"), done.err


PREFERS = """
__global__ void k(int *a) { a[threadIdx.x] = 1; }
__global__ void other(int *a) { a[threadIdx.x] = 1; }
int main()
{
    int *a;
    CHECK(cudaMalloc(&a, 128));
    k<<<1, 32>>>(a);
    CHECK(cudaFuncSetCacheConfig(k, cudaFuncCachePreferL1));
    k<<<1, 32>>>(a);
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    k<<<1, 32>>>(a);  // its own counts
    other<<<1, 32>>>(a);
    CHECK(cudaFuncSetAttribute(k, cudaFuncAttributePreferredSharedMemoryCarveout, 20));
    k<<<1, 32>>>(a);  // whatever else is said
    cudaFuncCache config;
    CHECK(cudaDeviceGetCacheConfig(&config));
    printf("%d %d", config == cudaFuncCachePreferShared,
           cudaFuncSetCacheConfig(k, (cudaFuncCache)4) == cudaErrorInvalidValue);
}
"""


def test_the_last_word_counts_and_a_percentage_before_others(tmp_path: Path) -> None:
    done = record(tmp_path, PREFERS, options=["-d", "h200"])
    assert (done.status, done.out) == (0, "1 1"), done.err
    launches = done.trace.launches
    said = ["", "prefer_l1", "prefer_l1", "prefer_shared", "20"]
    assert [launch.launch.prefers for launch in launches] == said
    # as an H200 does (tests/validate/carveouts_preferred.csv, 32 threads, no shared memory)
    apart = [
        p.counters["launch__shared_mem_config_size"]
        for p in cutrace.analyze(done.trace, "h200").launches
    ]
    assert apart == [size << 10 for size in (32, 32, 32, 228, 64)]

"""What programs ask about clusters before they launch them."""

from pathlib import Path

from program_run import record

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
    printf("%d %d %d %d; ", ask(1), ask(2), ask(4), ask(16));
    CHECK(cudaFuncSetAttribute(wide, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    size_t shared;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, wide, 2, 128));
    printf("%d %d; %zu", ask(1), ask(16), shared);
}
"""


def test_clusters_lie_in_gpcs(tmp_path: Path) -> None:
    done = record(tmp_path, APP, options=["-d", "h200"])
    # 132 SMs are 6 GPCs of 16 and 2 of 18: of pairs there are 66, of fours 6 * 4 + 2 * 4, of
    # sixteens 8; more than 8 blocks a cluster are refused (912) until they are allowed
    shared = 228 * 1024 // 2 - 1024  # two blocks in an SM, 1 KB of each is CUDA's own
    assert (done.status, done.out) == (0, f"8 66 32 -912; 16 8; {shared}"), done.err

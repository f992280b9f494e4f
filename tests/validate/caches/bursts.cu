// When a store finds its line in L1, where stores follow one another without a pause: by one warp or by
// several, to lines of their own or to shared ones.

typedef unsigned int u32;

__device__ void store(u32 *to, u32 value)
{
    asm volatile("st.global.u32 [%0], %1;" :: "l"(to), "r"(value) : "memory");
}
__device__ void wait(int many)
{
    u32 x = many;
    #pragma unroll 1
    for (int k = 0; k < many; k++) asm volatile("add.u32 %0, %0, 3;" : "+r"(x));
}

// `ROUNDS` times through MANY stores of so many lines each; every warp has its own.
// cutrace: run<1><<<1, 32>>>(out:u32[1048576], 1)
// cutrace: run<1><<<1, 128>>>(out, 1)
// cutrace: run<1><<<1, 256>>>(out, 1)
// cutrace: run<1><<<1, 32>>>(out, 2)
// cutrace: run<1><<<1, 128>>>(out, 2)
// cutrace: run<1><<<1, 256>>>(out, 2)
// cutrace: run<1><<<1, 32>>>(out, 4)
// cutrace: run<1><<<1, 128>>>(out, 4)
// cutrace: run<1><<<1, 256>>>(out, 4)
// cutrace: run<1><<<1, 32>>>(out, 8)
// cutrace: run<1><<<1, 128>>>(out, 8)
// cutrace: run<1><<<1, 256>>>(out, 8)
// cutrace: run<1><<<1, 32>>>(out, 16)
// cutrace: run<1><<<1, 128>>>(out, 16)
// cutrace: run<1><<<1, 256>>>(out, 16)
// cutrace: run<1><<<1, 32>>>(out, 32)
// cutrace: run<1><<<1, 128>>>(out, 32)
// cutrace: run<1><<<1, 256>>>(out, 32)
// cutrace: run<2><<<1, 32>>>(out, 1)
// cutrace: run<2><<<1, 128>>>(out, 1)
// cutrace: run<2><<<1, 256>>>(out, 1)
// cutrace: run<2><<<1, 32>>>(out, 2)
// cutrace: run<2><<<1, 128>>>(out, 2)
// cutrace: run<2><<<1, 256>>>(out, 2)
// cutrace: run<2><<<1, 32>>>(out, 4)
// cutrace: run<2><<<1, 128>>>(out, 4)
// cutrace: run<2><<<1, 256>>>(out, 4)
// cutrace: run<2><<<1, 32>>>(out, 8)
// cutrace: run<2><<<1, 128>>>(out, 8)
// cutrace: run<2><<<1, 256>>>(out, 8)
// cutrace: run<2><<<1, 32>>>(out, 16)
// cutrace: run<2><<<1, 128>>>(out, 16)
// cutrace: run<2><<<1, 256>>>(out, 16)
// cutrace: run<2><<<1, 32>>>(out, 32)
// cutrace: run<2><<<1, 128>>>(out, 32)
// cutrace: run<2><<<1, 256>>>(out, 32)
// cutrace: run<4><<<1, 32>>>(out, 1)
// cutrace: run<4><<<1, 128>>>(out, 1)
// cutrace: run<4><<<1, 256>>>(out, 1)
// cutrace: run<4><<<1, 32>>>(out, 2)
// cutrace: run<4><<<1, 128>>>(out, 2)
// cutrace: run<4><<<1, 256>>>(out, 2)
// cutrace: run<4><<<1, 32>>>(out, 4)
// cutrace: run<4><<<1, 128>>>(out, 4)
// cutrace: run<4><<<1, 256>>>(out, 4)
// cutrace: run<4><<<1, 32>>>(out, 8)
// cutrace: run<4><<<1, 128>>>(out, 8)
// cutrace: run<4><<<1, 256>>>(out, 8)
// cutrace: run<4><<<1, 32>>>(out, 16)
// cutrace: run<4><<<1, 128>>>(out, 16)
// cutrace: run<4><<<1, 256>>>(out, 16)
// cutrace: run<4><<<1, 32>>>(out, 32)
// cutrace: run<4><<<1, 128>>>(out, 32)
// cutrace: run<4><<<1, 256>>>(out, 32)
// cutrace: run<8><<<1, 32>>>(out, 1)
// cutrace: run<8><<<1, 128>>>(out, 1)
// cutrace: run<8><<<1, 256>>>(out, 1)
// cutrace: run<8><<<1, 32>>>(out, 2)
// cutrace: run<8><<<1, 128>>>(out, 2)
// cutrace: run<8><<<1, 256>>>(out, 2)
// cutrace: run<8><<<1, 32>>>(out, 4)
// cutrace: run<8><<<1, 128>>>(out, 4)
// cutrace: run<8><<<1, 256>>>(out, 4)
// cutrace: run<8><<<1, 32>>>(out, 8)
// cutrace: run<8><<<1, 128>>>(out, 8)
// cutrace: run<8><<<1, 256>>>(out, 8)
// cutrace: run<8><<<1, 32>>>(out, 16)
// cutrace: run<8><<<1, 128>>>(out, 16)
// cutrace: run<8><<<1, 256>>>(out, 16)
// cutrace: run<8><<<1, 32>>>(out, 32)
// cutrace: run<16><<<1, 32>>>(out, 1)
// cutrace: run<16><<<1, 128>>>(out, 1)
// cutrace: run<16><<<1, 256>>>(out, 1)
// cutrace: run<16><<<1, 32>>>(out, 2)
// cutrace: run<16><<<1, 128>>>(out, 2)
// cutrace: run<16><<<1, 256>>>(out, 2)
// cutrace: run<16><<<1, 32>>>(out, 4)
// cutrace: run<16><<<1, 128>>>(out, 4)
// cutrace: run<16><<<1, 256>>>(out, 4)
// cutrace: run<16><<<1, 32>>>(out, 8)
// cutrace: run<16><<<1, 128>>>(out, 8)
// cutrace: run<16><<<1, 256>>>(out, 8)
// cutrace: run<16><<<1, 32>>>(out, 16)
// cutrace: run<16><<<1, 32>>>(out, 32)
template <int MANY> __global__ void run(u32 *out, int lines)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 *own = out + (warp * MANY * lines + lane * lines / 32) * 32 + lane;
    #pragma unroll
    for (int round = 0; round < 4; round++)
        #pragma unroll
        for (int k = 0; k < MANY; k++) store(own + k * lines * 32, round);
}
// Two warps and the same lines, the second one later: the same words, every other word, neighbours.
// cutrace: later<<<1, 64>>>(out, 0, 0)
// cutrace: later<<<1, 64>>>(out, 0, 1)
// cutrace: later<<<1, 64>>>(out, 0, 2)
// cutrace: later<<<1, 64>>>(out, 0, 3)
// cutrace: later<<<1, 64>>>(out, 0, 4)
// cutrace: later<<<1, 64>>>(out, 0, 6)
// cutrace: later<<<1, 64>>>(out, 0, 8)
// cutrace: later<<<1, 64>>>(out, 0, 12)
// cutrace: later<<<1, 64>>>(out, 0, 16)
// cutrace: later<<<1, 64>>>(out, 0, 32)
// cutrace: later<<<1, 64>>>(out, 0, 64)
// cutrace: later<<<1, 64>>>(out, 1, 0)
// cutrace: later<<<1, 64>>>(out, 1, 1)
// cutrace: later<<<1, 64>>>(out, 1, 2)
// cutrace: later<<<1, 64>>>(out, 1, 3)
// cutrace: later<<<1, 64>>>(out, 1, 4)
// cutrace: later<<<1, 64>>>(out, 1, 6)
// cutrace: later<<<1, 64>>>(out, 1, 8)
// cutrace: later<<<1, 64>>>(out, 1, 12)
// cutrace: later<<<1, 64>>>(out, 1, 16)
// cutrace: later<<<1, 64>>>(out, 1, 32)
// cutrace: later<<<1, 64>>>(out, 1, 64)
// cutrace: later<<<1, 64>>>(out, 2, 0)
// cutrace: later<<<1, 64>>>(out, 2, 1)
// cutrace: later<<<1, 64>>>(out, 2, 2)
// cutrace: later<<<1, 64>>>(out, 2, 3)
// cutrace: later<<<1, 64>>>(out, 2, 4)
// cutrace: later<<<1, 64>>>(out, 2, 6)
// cutrace: later<<<1, 64>>>(out, 2, 8)
// cutrace: later<<<1, 64>>>(out, 2, 12)
// cutrace: later<<<1, 64>>>(out, 2, 16)
// cutrace: later<<<1, 64>>>(out, 2, 32)
// cutrace: later<<<1, 64>>>(out, 2, 64)
extern "C" __global__ void later(u32 *out, int how, int many)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 *own = out + (how == 0 ? lane : how == 1 ? 2 * lane + warp : 8 + 32 * warp + lane);
    wait(warp * many);
    store(own, warp);
}
// Many warps at once: neighbours that share lines, `offset` words beyond a line's begin.
// cutrace: beyond<<<1, 64>>>(out, 1)
// cutrace: beyond<<<1, 64>>>(out, 8)
// cutrace: beyond<<<1, 64>>>(out, 16)
// cutrace: beyond<<<1, 64>>>(out, 24)
// cutrace: beyond<<<1, 64>>>(out, 31)
// cutrace: beyond<<<1, 128>>>(out, 1)
// cutrace: beyond<<<1, 128>>>(out, 8)
// cutrace: beyond<<<1, 128>>>(out, 16)
// cutrace: beyond<<<1, 128>>>(out, 24)
// cutrace: beyond<<<1, 128>>>(out, 31)
// cutrace: beyond<<<1, 256>>>(out, 1)
// cutrace: beyond<<<1, 256>>>(out, 8)
// cutrace: beyond<<<1, 256>>>(out, 16)
// cutrace: beyond<<<1, 256>>>(out, 24)
// cutrace: beyond<<<1, 256>>>(out, 31)
// cutrace: beyond<<<1, 1024>>>(out, 1)
// cutrace: beyond<<<1, 1024>>>(out, 8)
// cutrace: beyond<<<1, 1024>>>(out, 16)
// cutrace: beyond<<<1, 1024>>>(out, 24)
// cutrace: beyond<<<1, 1024>>>(out, 31)
// cutrace: beyond<<<132, 256>>>(out, 1)
// cutrace: beyond<<<132, 256>>>(out, 8)
// cutrace: beyond<<<132, 256>>>(out, 24)
extern "C" __global__ void beyond(u32 *out, int offset)
{
    store(out + blockIdx.x * blockDim.x + threadIdx.x + offset, 1);
}
// Every warp a word of so many, of the same lines.
// cutrace: dealt<<<1, 64>>>(out, 2)
// cutrace: dealt<<<132, 64>>>(out, 2)
// cutrace: dealt<<<1, 128>>>(out, 2)
// cutrace: dealt<<<132, 128>>>(out, 2)
// cutrace: dealt<<<1, 256>>>(out, 2)
// cutrace: dealt<<<132, 256>>>(out, 2)
// cutrace: dealt<<<1, 128>>>(out, 4)
// cutrace: dealt<<<132, 128>>>(out, 4)
// cutrace: dealt<<<1, 256>>>(out, 4)
// cutrace: dealt<<<132, 256>>>(out, 4)
// cutrace: dealt<<<1, 256>>>(out, 8)
// cutrace: dealt<<<132, 256>>>(out, 8)
// cutrace: dealt<<<1, 512>>>(out, 16)
// cutrace: dealt<<<132, 512>>>(out, 16)
// cutrace: dealt<<<1, 1024>>>(out, 32)
// cutrace: dealt<<<132, 1024>>>(out, 32)
extern "C" __global__ void dealt(u32 *out, int each)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32, lane = i % 32;
    store(out + warp / each * each * 32 + lane * each + warp % each, warp);
}
// The same behind a load that all wait for.
// cutrace: dealt_loads<<<1, 64>>>(out, in:u32[1048576]=arange, 2)
// cutrace: dealt_loads<<<264, 64>>>(out, in, 2)
// cutrace: dealt_loads<<<1, 128>>>(out, in, 2)
// cutrace: dealt_loads<<<264, 128>>>(out, in, 2)
// cutrace: dealt_loads<<<1, 256>>>(out, in, 2)
// cutrace: dealt_loads<<<264, 256>>>(out, in, 2)
// cutrace: dealt_loads<<<1, 256>>>(out, in, 4)
// cutrace: dealt_loads<<<264, 256>>>(out, in, 4)
// cutrace: dealt_loads<<<1, 256>>>(out, in, 8)
// cutrace: dealt_loads<<<264, 256>>>(out, in, 8)
// cutrace: dealt_loads<<<1, 1024>>>(out, in, 32)
// cutrace: dealt_loads<<<264, 1024>>>(out, in, 32)
extern "C" __global__ void dealt_loads(u32 *out, const u32 *in, int each)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32, lane = i % 32;
    store(out + warp / each * each * 32 + lane * each + warp % each, in[i]);
}

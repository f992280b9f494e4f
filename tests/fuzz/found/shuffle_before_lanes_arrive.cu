// array values: out_f[0] is np.float32(-24.0), the oracle has np.float32(-48.0) (62 of 1024 elements differ)
// seed 40
// launch: k40<<<(1, 2, 1), (64, 1, 1)>>> with values 0
struct Pack {
    short a;
    unsigned long long b;
    float c;
    unsigned d;
};

extern "C" __global__ void k40(int *out_i, unsigned *out_u, float *out_f, unsigned *own, const unsigned *in_u, const float *in_f, int n, float scale, long long wide)
{
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int gid = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * threads + t;
    int total = gridDim.x * gridDim.y * gridDim.z * threads;
    int lane = t & 31;
    int wn = min(32, threads - (t & ~31));
    unsigned wm = wn == 32 ? 0xffffffffu : (1u << wn) - 1;
    int tx = threadIdx.x;
    int bx = blockIdx.x;
    unsigned long long u1 = ((18446744073709551615ull != 1ull) ? 0x123456789abcdefull : 0ull);
    unsigned u2 = (~(unsigned)lane);
    int i3 = (t >> (u2 & 31));
    unsigned u4 = ((unsigned)t >> (u2 & 31));
    float f5 = (((bool)in_u[u4 & 1023] ? ((wide > wide) || ((double)u1 == (double)u1)) : (in_f[gid & 1023] > 0)) ? scale : -7.75f);
    Pack q6 = { (short)(short)u1, (unsigned long long)u1, (float)f5, (unsigned)(unsigned)gid };
    for (int k8 = 16; k8 > 0; k8 >>= 1) {
        unsigned long long y7 = __shfl_down_sync(wm, q6.b, k8);
        if (lane + k8 < wn) q6.b = (unsigned long long)((unsigned long long)q6.b + (unsigned long long)y7);
    }
    for (int k9 = 0; k9 < 3; k9++) {
        if (((q6.a == (short)u2) ? ((i3 == bx) && ((unsigned)lane <= 1u)) : (((unsigned)t & 1) != 0))) {
            for (int k10 = (tx % 4); k10 > 0; k10--) {
                if ((0ull <= 0ull) && (i3 = ((0.0f <= f5) ? i3 : 0), (0.0f >= f5))) {
                    q6.c = fmaxf(q6.c, 0.0f);
                }
                q6.a = (short)__float2int_rz(0.0f);
            }
            switch ((u4 << (q6.d & 31)) & 7) {
            case 0:
                if (((i3 ^ i3) < (int)((unsigned)i3 - (unsigned)gid))) {
                    i3 |= min(tx, i3);
                    out_u[gid * 8 + 5] = (unsigned)t;
                    i3 |= (i3 ^ 100);
                }
            case 1:
                if ((!(i3 >= i3))) {

                } else {
                    u2 = atomicInc(&own[gid * 4 + (in_u[gid] & 3)], (u2 | u2));
                }
                u4 *= min(q6.d, u2);
                break;
            }
        } else {
            out_i[7 * total + gid] = n;
            if ((t == 40)) {
                i3 |= (int)((unsigned)gid - (unsigned)i3);
                out_i[6 * total + gid] = i3;
                u4 -= (unsigned)u1;
            }
        }
        out_f[7 * total + gid] = q6.c;
        for (int k12 = 0; k12 < (int)blockIdx.x % 2 + 1; k12++) {
            q6.b = __shfl_sync(wm, q6.b, (int)((q6.d * (unsigned)bx) % wn));
        }
    }
    for (int k17 = 16; k17 > 0; k17 >>= 1) {
        float y16 = __shfl_down_sync(wm, f5, k17);
        if (lane + k17 < wn) f5 = f5 + y16;
    }
    out_f[0 * total + gid] = f5;
}

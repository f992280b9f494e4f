// array values: lanes did not meet again where a way led to `L: bra L`, code that is not reached
// launch: k<<<(1, 1, 1), (32, 1, 1)>>> with values 7
__device__ float fn0(signed char arg0)
{
    unsigned short u1 = (unsigned short)(unsigned long long)arg0;
    unsigned long long a2[8] = { (unsigned long long)(unsigned long long)u1, (unsigned long long)(unsigned long long)u1, (unsigned long long)(unsigned long long)u1, (unsigned long long)(unsigned long long)arg0, (unsigned long long)(unsigned long long)u1, (unsigned long long)18446744073709551615ull, (unsigned long long)(unsigned long long)u1, (unsigned long long)(unsigned long long)arg0 };
    float4 v3 = make_float4((float)(float)u1, (float)(float)u1, (float)(float)arg0, (float)(float)arg0);
    if ((((long long)arg0 >> ((unsigned)arg0 & 63)) >= __double2ll_rz(number((double)u1)))) {
        v3.y = (v3.w * (float)arg0);
    } else {
        if (((((((unsigned long long)u1 & 1) != 0) ? (((float)u1 <= (float)arg0) && (((double)arg0 != (double)arg0) ? (v3.x > v3.x) : ((long long)__float2int_rz(v3.w) >= (long long)u1))) : ((long long)arg0 >= (long long)__float2int_rz(v3.x))) ? ((short)__float2int_rz(v3.y) <= (short)arg0) : ((int)__float2int_rz(v3.w) >= -1)) ? ((int)u1 >= (int)u1) : ((double)arg0 < (double)u1))) {
            if ((31u == (unsigned)u1)) {
                float x4 = v3.w;
                v3.w = v3.x;
                v3.x = x4;
            }
            arg0 = (signed char)((signed char)127 + (signed char)u1);
            for (int k5 = 0; k5 < (int)((unsigned)(int)__float2int_rz(v3.y) % 3u); k5++) {
                if ((k5 >= 5)) {
                    continue;
                }
                u1 = u1 >> ((unsigned)a2[(k5 * 1 + 4u) & 7] & 7);
            }
        }
        a2[(unsigned)(unsigned long long)__float2int_rz(v3.z) & 7] ^= a2[(unsigned)arg0 & 7];
        v3.x = (1.1754944e-38f - (float)arg0);
    }
    for (int k6 = 0; k6 < (int)(((v3.x <= v3.x) ? (unsigned)__float2int_rz(v3.z) : (unsigned)__float2int_rz(v3.z)) % 15u); k6 += 2) {
        if ((k6 % 3 < 1)) {
            v3.y = fmaxf(v3.y, ((31u != (unsigned)k6) ? v3.z : v3.w));
        }
        switch ((int)(unsigned)k6 & 7) {
        case 0:
            v3.y = ceilf(v3.z);
        case 1:
            if ((((unsigned)k6 <= (unsigned)k6) || (bool)a2[(int)__float2int_rz(v3.z) & 7])) {
                if ((k6 == 1)) {
                    v3.w = fminf(v3.w, (float)(int)arg0);
                }
                arg0 = arg0 >> (__funnelshift_r((unsigned)k6, 3u, (unsigned)k6) & 7);
            } else {
                if ((k6 % 3 != 1)) {
                    arg0 = arg0 >> (min((unsigned)k6, (unsigned)k6) & 7);
                    break;
                }
                if ((bool)a2[(k6 * 2 + 0u) & 7]) {
                    continue;
                }
            }
        case 2:

            break;
        case 3:
            if ((k6 != 40)) {
                if ((k6 >= 100)) {
                    if ((k6 >= 31)) {
                        float x7 = v3.x;
                        v3.x = v3.x;
                        v3.x = x7;
                    }
                    v3.x = fminf(v3.x, (3.25f + v3.x));
                }
                a2[(k6 * 1 + 1u) & 7] = ((-68 != k6) ? (unsigned long long)arg0 : (unsigned long long)arg0);
                a2[abs(max(k6, -2147483647)) & 7] ^= ((unsigned long long)arg0 % ((unsigned long long)arg0 | 1ull));
            } else {
                if ((bool)a2[(unsigned)k6 & 7]) {
                    v3.x -= fabsf(v3.x);
                }
                if ((__dadd_rz((double)v3.x, (double)u1) != (double)u1)) {
                    v3.z = -v3.z;
                }
            }
            break;
        }
        if ((k6 % 3 < 1)) {
            a2[((((unsigned)k6 == (unsigned)k6) || ((unsigned long long)u1 < (unsigned long long)u1)) ? (unsigned)k6 : (unsigned)k6) & 7] = (unsigned long long)__popcll((unsigned long long)__float2int_rz(v3.x));
            switch (((k6 < k6) ? k6 : k6) & 3) {
            case 0:

                break;
            case 1:
                if ((bool)a2[(k6 * 8 + 1u) & 7]) {
                    v3.w = __double2float_rz((double)arg0) - v3.w;
                    u1 ^= (unsigned short)((unsigned short)__float2int_rz(v3.y) / ((u1 & 7) + 1));
                }
            case 2:
                if ((k6 % 3 < 1)) {
                    u1 |= (unsigned short)(u1 >> ((unsigned)k6 & 7));
                    if ((k6 != 1)) {
                        arg0 = arg0 >> (__funnelshift_rc(2147483648u, (unsigned)k6, (unsigned)k6) & 7);
                        arg0 |= (signed char)((signed char)3 + arg0);
                    }
                } else {
                    arg0 = (signed char)__float2int_rz(fmaxf(((float)arg0 - (float)arg0), fmaxf((float)u1, v3.y)));
                    if ((bool)a2[(k6 * 8 + 15u) & 7]) {
                        arg0 = arg0 >> (((unsigned)k6 / ((unsigned)k6 | 1u)) & 7);
                        u1 ^= (unsigned short)(u1 ^ u1);
                    }
                }
                if ((v3.z == v3.x)) {
                    break;
                }
            case 3:
                v3.z *= ceilf(v3.w);
            default:
                if ((k6 % 3 != 1) || (u1 = (unsigned short)__float2int_rz(v3.w), ((v3.w > (float)u1) ? ((unsigned)k6 == (unsigned)k6) : (bool)a2[(k6 * 8 + 4u) & 7]))) {
                    if ((k6 % 7 < 1)) {
                        v3.z = (((v3.x != v3.x) ^ ((short)u1 > (short)u1)) ? v3.w : v3.z) - v3.z;
                        u1 = u1 >> ((unsigned)arg0 & 7);
                    }
                }
                a2[(k6 * 5 + 9u) & 7] = ((unsigned long long)(unsigned)k6 * (unsigned)k6);
                break;
            }
            if (((long long)u1 >= (long long)arg0)) {
                arg0 ^= (signed char)(-(arg0));
            }
        } else {
            if ((k6 >= 32)) {
                v3.x += (float)(long long)__float2int_rz(v3.w);
            }
        }
        if ((k6 == 1)) {
            float x8 = v3.x;
            v3.x = v3.y;
            v3.y = x8;
        }
    }
    return (v3.y / v3.w);
}

extern "C" __global__ void k(float *out_f)
{
    int t = threadIdx.x;
    float f3 = fn0((signed char)t);
    out_f[t] = __shfl_sync(0xffffffffu, f3, 0);
    out_f[t + 32] = f3;
}

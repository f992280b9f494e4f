// Kernels whose lanes diverge: each lane reads a value of `v`, one warp. What an H100 counts is in
// divergence.csv.
#define L (threadIdx.x & 31)
#define ONCE _Pragma("unroll 1")
__device__ __forceinline__ unsigned now() { unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t)); return t; }
typedef const int *P;
typedef unsigned *Q;
extern "C" {
// a branch of two sides with a loop each, so that none is predicated
__global__ void sides(P v, Q o) {
  int n = v[L], x = n;
  if (n & 1) { ONCE for (int i = 0; i < 4; i++) x = x * 3 + i; o[L + 32] = now(); }
  else { ONCE for (int i = 0; i < 4; i++) x = x * 5 ^ i; o[L + 64] = now(); }
  o[L] = x;
}
// one side only
__global__ void one_side(P v, Q o) {
  int n = v[L], x = n;
  if (n & 1) { ONCE for (int i = 0; i < 4; i++) x = x * 3 + i; o[L + 32] = now(); }
  o[L] = x + 1;
}
// a loop of v[L] turns
__global__ void loop(P v, Q o) {
  int n = v[L], x = n;
  ONCE for (int i = 0; i < n; i++) x = x * 3 + i;
  o[L] = x;
}
__global__ void loop_clock(P v, Q o) {
  int n = v[L], x = n; unsigned t = 0;
  ONCE for (int i = 0; i < n; i++) { x = x * 3 + i; t = now(); }
  o[L] = x; o[L + 32] = t;
}
__global__ void do_loop(P v, Q o) {
  int n = v[L], x = n, i = 0;
  do { x = x * 3 + i; x ^= x >> 3; } while (++i < n);
  o[L] = x;
}
// leaves in the middle
__global__ void breaks(P v, Q o) {
  int n = v[L], x = n;
  ONCE for (int i = 0; i < 12; i++) { x = x * 3 + i; if (i == n) break; x ^= x >> 3; o[L + 32] = x; }
  o[L] = x;
}
// two ways out of a loop
__global__ void two_breaks(P v, Q o) {
  int n = v[L], x = n;
  ONCE for (int i = 0; i < 12; i++) {
    x = x * 3 + i;
    if (i == n) { ONCE for (int k = 0; k < 2; k++) x = x * 7 + k; o[L + 32] = x; break; }
    x ^= x >> 3;
    if (i == n * 2 - 1) { ONCE for (int k = 0; k < 2; k++) x = x * 9 + k; o[L + 64] = x; break; }
  }
  o[L] = x;
}
__global__ void continues(P v, Q o) {
  int n = v[L], x = n;
  ONCE for (int i = 0; i < n; i++) {
    x = x * 3 + i;
    if (x & 4) continue;
    ONCE for (int k = 0; k < 2; k++) x = x * 9 + k;
  }
  o[L] = x;
}
__global__ void nested(P v, Q o) {
  int n = v[L], x = n;
  if (n & 1) {
    if (n & 2) { ONCE for (int i = 0; i < 3; i++) x = x * 3 + i; o[L + 32] = now(); }
    else { ONCE for (int i = 0; i < 3; i++) x = x * 5 ^ i; o[L + 64] = now(); }
  } else {
    if (n & 4) { ONCE for (int i = 0; i < 3; i++) x = x * 7 + i; o[L + 96] = now(); }
    else { ONCE for (int i = 0; i < 3; i++) x = x * 9 ^ i; o[L + 128] = now(); }
  }
  o[L] = x;
}
__global__ void nested_loop(P v, Q o) {
  int n = v[L], x = n;
  ONCE for (int i = 0; i < n; i++) { ONCE for (int k = 0; k < (x & 3); k++) x = x * 3 + k; x += i; }
  o[L] = x;
}
__global__ void returns(P v, Q o) {
  int n = v[L], x = n;
  if (n & 1) { ONCE for (int i = 0; i < 3; i++) x = x * 3 + i; o[L] = x; return; }
  ONCE for (int i = 0; i < n; i++) { x = x * 5 + i; if (x & 8) return; }
  o[L] = x;
}
__global__ void switches(P v, Q o) {
  int n = v[L], x = n;
  switch (n & 7) {
  case 0: ONCE for (int i = 0; i < 2; i++) x = x * 3 + i; o[L + 32] = now(); break;
  case 1: ONCE for (int i = 0; i < 3; i++) x = x * 5 ^ i; o[L + 64] = now(); break;
  case 2: ONCE for (int i = 0; i < 4; i++) x = x * 7 - i; o[L + 96] = now();
  case 3: ONCE for (int i = 0; i < 2; i++) x = x * 9 | i; o[L + 128] = now(); break;
  case 4: ONCE for (int i = 0; i < 2; i++) x = x * 11 & ~i; o[L + 160] = now(); break;
  case 5: ONCE for (int i = 0; i < 5; i++) x = x * 13 + i; o[L + 192] = now(); break;
  default: x = 1;
  }
  o[L] = x;
}
__device__ __noinline__ int callee(int x, int n) { ONCE for (int i = 0; i < n; i++) x = x * 3 + i; return x; }
__global__ void calls(P v, Q o) {
  int n = v[L], x = n;
  if (n & 1) x = callee(x, n); else { ONCE for (int i = 0; i < 2; i++) x = x * 5 + i; x = callee(x + 1, 2); }
  o[L] = x;
}
__global__ void loads(P v, Q o) {   // a chain of loads: lanes wait for memory
  int n = v[L], x = L;
  ONCE for (int i = 0; i < n; i++) x = v[32 + x];
  o[L] = x;
}
__global__ void side_loads(P v, Q o) {
  int n = v[L], x = L;
  if (n & 1) { ONCE for (int i = 0; i < 3; i++) x = v[32 + x]; o[L + 32] = now(); }
  else { ONCE for (int i = 0; i < 3; i++) x = x * 3 + i; o[L + 64] = now(); }
  o[L] = x;
}
__global__ void divides(P v, Q o) {
  float f = v[L], s = 1.f;
  ONCE for (int i = 1; i < 4; i++) s = s / (f * 1e-39f * i + 1e-40f);
  o[L] = __float_as_uint(s);
}
__global__ void atomics(P v, Q o) {
  __shared__ int c[8];
  int n = v[L];
  if (threadIdx.x < 8) c[threadIdx.x] = 0;
  __syncthreads();
  if (n & 1) { int k = atomicAdd(&c[0], 1); o[L + 32] = k; }
  else { ONCE for (int i = 0; i < 3; i++) n = n * 3 + i; int k = atomicAdd(&c[0], 1); o[L + 64] = k; }
  o[L] = n;
}
__global__ void binary(P v, Q o) {   // a search: sides of a branch inside of a loop that lanes leave
  int n = v[L] * 5, lo = 0, hi = 64;
  ONCE while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (v[32 + mid] == n) { o[L + 32] = mid; break; }
    if (mid < n) { lo = mid + 1; ONCE for (int k = 0; k < 2; k++) hi = hi * 3 % 67; if (hi < lo) hi = lo + (n & 3); } else hi = mid;
  }
  o[L] = lo;
}
__global__ void short_circuit(P v, Q o) {
  int n = v[L], x = n;
  if ((n & 1) && v[32 + n] > 3 || (n & 4)) { ONCE for (int i = 0; i < 3; i++) x = x * 3 + i; o[L + 32] = x; }
  o[L] = x;
}
__global__ void collatz(P v, Q o) {
  int n = v[L] + 1, s = 0;
  ONCE while (n != 1) { if (n & 1) { n = 3 * n + 1; ONCE for (int k = 0; k < 1; k++) s ^= o[L + 64]; } else n >>= 1; s++; }
  o[L] = s;
}
}

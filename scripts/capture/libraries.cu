// Calls of NVIDIA's libraries, one or all: nvcc -arch=sm_90 libraries.cu -lcublas -lcublasLt -lcusolver
// ./a.out [NUMBER]. Each prints the largest difference to what is computed on the host. Their kernels
// and counters on an H100 are in tests/validate/libraries.csv, the pitches in pitches.csv.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
static int only;
static std::vector<float> values(int n, int seed)
{
    std::vector<float> v(n);
    unsigned s = seed * 2654435761u + 1;
    for (float &x : v) s = s * 1664525u + 1013904223u, x = int(s >> 28) / 8.f - 1;
    return v;
}
template <class T> static T *put(const std::vector<float> &v)
{
    std::vector<T> h(v.begin(), v.end());
    T *p;
    cudaMalloc(&p, h.size() * sizeof(T));
    cudaMemcpy(p, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice);
    return p;
}
template <class T> static std::vector<float> get(const T *p, int n)
{
    std::vector<T> h(n);
    cudaMemcpy(h.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
    std::vector<float> v(n);
    for (int i = 0; i < n; i++) v[i] = float(h[i]);
    return v;
}
static void say(int number, const char *name, int status, const std::vector<float> &got, const std::vector<double> &want)
{
    double worst = 0, sum = 0;
    for (size_t i = 0; i < want.size(); i++) worst = fmax(worst, fabs(got[i] - want[i])), sum += want[i];
    printf("%d %s status %d sum %.3f worst %.2e %s\n", number, name, status, sum, worst, cudaGetErrorName(cudaGetLastError()));
    fflush(stdout);
}
static std::vector<double> product(const std::vector<float> &a, const std::vector<float> &b, int m, int n, int k, bool ta, bool tb)
{
    std::vector<double> c(m * n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double s = 0;
            for (int l = 0; l < k; l++) s += double(ta ? a[l + i * k] : a[i + l * m]) * (tb ? b[j + l * n] : b[l + j * k]);
            c[i + j * m] = s;
        }
    return c;
}
static cublasHandle_t handle;
static void sgemm(int number, int m, int n, int k, bool ta, bool tb)
{
    if (only && only != number) return;
    auto a = values(m * k, 1), b = values(k * n, 2);
    float *A = put<float>(a), *B = put<float>(b), *C = put<float>(std::vector<float>(m * n)), one = 1, zero = 0;
    int s = cublasSgemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &one, A, ta ? k : m, B, tb ? n : k, &zero, C, m);
    char name[80];
    sprintf(name, "cublasSgemm %dx%dx%d %c%c", m, n, k, "nt"[ta], "nt"[tb]);
    say(number, name, s, get(C, m * n), product(a, b, m, n, k, ta, tb));
}
template <class T> static void gemmex(int number, int m, int n, int k, cudaDataType in, cudaDataType out)
{
    if (only && only != number) return;
    auto a = values(m * k, 1), b = values(k * n, 2);
    __half *A = put<__half>(a), *B = put<__half>(b);
    T *C = put<T>(std::vector<float>(m * n));
    float one = 1, zero = 0;
    int s = cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, A, in, m, B, in, k, &zero, C, out, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    char name[80];
    sprintf(name, "cublasGemmEx f16 %dx%dx%d to %s", m, n, k, out == CUDA_R_16F ? "f16" : "f32");
    say(number, name, s, get(C, m * n), product(a, b, m, n, k, false, false));
}
template <class T> static void lt(int number, int m, int n, int k, cudaDataType type, cublasLtEpilogue_t epilogue)
{
    if (only && only != number) return;
    auto a = values(m * k, 1), b = values(k * n, 2), bias = values(m, 3);
    T *A = put<T>(a), *B = put<T>(b), *D = put<T>(bias), *C = put<T>(std::vector<float>(m * n));
    cublasLtHandle_t l;
    cublasLtCreate(&l);
    cublasLtMatmulDesc_t d;
    cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &D, sizeof D);
    cublasLtMatrixLayout_t x, y, z;
    cublasLtMatrixLayoutCreate(&x, type, m, k, m);
    cublasLtMatrixLayoutCreate(&y, type, k, n, k);
    cublasLtMatrixLayoutCreate(&z, type, m, n, m);
    cublasLtMatmulPreference_t p;
    cublasLtMatmulPreferenceCreate(&p);
    size_t room = 4 << 20;
    void *work;
    cudaMalloc(&work, room);
    cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    cublasLtMatmulHeuristicResult_t h;
    int count = 0;
    float one = 1, zero = 0;
    int s = cublasLtMatmulAlgoGetHeuristic(l, d, x, y, z, z, p, 1, &h, &count);
    if (!s && count) s = cublasLtMatmul(l, d, &one, A, x, B, y, &zero, C, z, C, z, &h.algo, work, room, 0);
    auto want = product(a, b, m, n, k, false, false);
    for (int i = 0; i < m * n; i++) {
        double v = want[i] + bias[i % m];
        want[i] = epilogue == CUBLASLT_EPILOGUE_BIAS ? v : v / 2 * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
    }
    char name[80];
    sprintf(name, "cublasLtMatmul %s %dx%dx%d %s", type == CUDA_R_32F ? "f32" : "f16", m, n, k, epilogue == CUBLASLT_EPILOGUE_BIAS ? "bias" : "gelu bias");
    say(number, name, s, get(C, m * n), want);
}
static void getrf(int number, int n)
{
    if (only && only != number) return;
    auto a = values(n * n, 1);
    for (int i = 0; i < n; i++) a[i + i * n] += n;
    float *A = put<float>(a);
    cusolverDnHandle_t h;
    cusolverDnCreate(&h);
    int room = 0, *info, *pivots;
    int s = cusolverDnSgetrf_bufferSize(h, n, n, A, n, &room);
    float *work = put<float>(std::vector<float>(room));
    cudaMalloc(&info, 4), cudaMalloc(&pivots, 4 * n);
    if (!s) s = cusolverDnSgetrf(h, n, n, A, n, work, pivots, info);
    std::vector<double> want(a.begin(), a.end());
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            want[i + k * n] /= want[k + k * n];
            for (int j = k + 1; j < n; j++) want[i + j * n] -= want[i + k * n] * want[k + j * n];
        }
    char name[80];
    sprintf(name, "cusolverDnSgetrf %d", n);
    say(number, name, s, get(A, n * n), want);
}
int main(int argc, char **argv)
{
    only = argc > 1 ? atoi(argv[1]) : 0;
    int version = 0;
    printf("create %d\n", int(cublasCreate(&handle)));
    cublasGetVersion(handle, &version);
    printf("version %d lt %zu\n", version, cublasLtGetVersion());
    sgemm(1, 128, 128, 128, false, false);
    sgemm(2, 512, 512, 512, false, false);
    sgemm(3, 100, 70, 30, false, true);
    gemmex<__half>(4, 256, 256, 256, CUDA_R_16F, CUDA_R_16F);
    gemmex<float>(5, 100, 72, 64, CUDA_R_16F, CUDA_R_32F);
    lt<float>(6, 128, 64, 96, CUDA_R_32F, CUBLASLT_EPILOGUE_GELU_BIAS);
    lt<__half>(7, 128, 128, 64, CUDA_R_16F, CUBLASLT_EPILOGUE_GELU_BIAS);
    getrf(8, 64);
    void *p;
    size_t pitch, widths[] = {1, 100, 512, 513, 4000, 100000};
    for (size_t w : widths)
        for (size_t rows : {1, 3, 100, 1000})
            if (!cudaMallocPitch(&p, &pitch, w, rows)) printf("pitch %zu %zu %zu %llx\n", w, rows, pitch, (unsigned long long)p % (2ull << 20));
    return 0;
}

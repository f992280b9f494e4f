"""Programs that call cuBLAS, cuFFT, cuRAND and cuSPARSE: the host computes what NumPy says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from program_run import FILES, Done, record_built, together

pytestmark = pytest.mark.slow

Matrix = NDArray[Any]

BLAS = (
    "#include <cublas_v2.h>\n"
    + r"""
typedef cuDoubleComplex Z;
int main() {
    cublasHandle_t h; DO(cublasCreate(&h));
    double *a = read<double>("a", 12), *b = read<double>("b", 12), *c = read<double>("c", 16);
    double alpha = 1.5, beta = -0.5, *one;
    touch<<<1, 12>>>(a);
    DO(cublasDgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, 4, 4, 3, &alpha, a, 4, b, 4, &beta, c, 4));
    write("gemm", c, 128);
    DO(cublasDgemv(h, CUBLAS_OP_T, 4, 3, &alpha, a, 4, b, 2, &beta, c, -1)); write("gemv", c, 128);
    DO(cublasDger(h, 4, 4, &alpha, a, 1, b, 1, c, 4)); write("ger", c, 128);
    DO(cublasDsymm(h, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, 3, 4, &alpha, c, 4, b, 3, &beta,
            a, 3));
    write("symm", a, 96);
    DO(cublasDtrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
            CUBLAS_DIAG_NON_UNIT, 4, 3,
                   &alpha, c, 4, b, 4));
    write("trsm", b, 96);
    DO(cublasDtrmm(h, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT,
            3, 4,
                   &alpha, c, 4, b, 3, a, 3));
    write("trmm", a, 96);
    CHECK(cudaMallocManaged(&one, 8)); *one = 0;
    DO(cublasDnrm2(h, 12, a, 1, &alpha)); write("nrm2", &alpha, 8);
    int place; DO(cublasIdamax(h, 12, a, 1, &place)); write("amax", &place, 4);
    DO(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    DO(cublasDdot(h, 6, a, 2, b, -1, one)); write("dot", one, 8);
    DO(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
    Z *x = read<Z>("x", 8), *y = read<Z>("y", 8), *z; CHECK(cudaMallocManaged(&z, 128));
    Z i = make_cuDoubleComplex(0, 1), zero = make_cuDoubleComplex(0, 0);
    DO(cublasZgemmStridedBatched(h, CUBLAS_OP_C, CUBLAS_OP_N, 2, 2, 2, &i, x, 2, 4, y, 2, 4, &zero,
                                 z, 2, 4, 2));
    write("batched", z, 128);
    DO(cublasZdotc(h, 8, x, 1, y, 1, &i)); write("dotc", &i, 16);
    __half *p = read<__half>("p", 4), *q = read<__half>("q", 4); float *r, s = 2, t = 0;
    CHECK(cudaMallocManaged(&r, 16));
    DO(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &s, p, CUDA_R_16F, 2, q, CUDA_R_16F, 2,
            &t, r,
                    CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    write("mixed", r, 16);
    __half half = 0.5, none = 0, *u; CHECK(cudaMallocManaged(&u, 8));
    DO(cublasHgemm(h, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &half, p, 2, q, 2, &none, u, 2));
    write("halves", u, 8);
    printf("refused %d\n", (int)cublasSsyr2k(h));
    DO(cublasDestroy(h));
}
"""
)


def _write(folder: Path, **arrays: Matrix) -> None:
    for name, array in arrays.items():
        (folder / name).write_bytes(array.tobytes(order="F"))


def _read(folder: Path, name: str, type_: str, *shape: int) -> Matrix:
    return np.fromfile(folder / name, type_).reshape(shape, order="F")


def _calls(done: Done) -> list[str]:
    return [event.name for event in done.trace.manifest.events if event.kind == "library"]


def calculate(folder: Path, name: str) -> Done:
    """Record one of the programs, which are built as one."""
    source = together(FILES, {"blas": BLAS, "fourier": FOURIER, "sparse": SPARSE})
    words = ("-lcublas", "-lcufft", "-lcurand", "-lcusparse")
    return record_built(folder, source, name, words=words)


def test_blas_computes_what_numpy_does(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    a, b, c = (dice.normal(size=shape) for shape in ((4, 3), (4, 3), (4, 4)))
    x, y = (dice.normal(size=(2, 2, 2, 2)) @ np.array([1, 1j]) for _ in range(2))
    p, q = (dice.normal(size=(2, 2)).astype(np.float16) for _ in range(2))
    _write(tmp_path, a=a, b=b, c=c, x=x, y=y, p=p, q=q)
    done = calculate(tmp_path, "blas")
    assert (done.status, done.out) == (0, "refused 15\n"), done.err
    assert "cutrace: cublasSsyr2k is not supported: its library is machine code" in done.err

    c = 1.5 * a @ b.T - 0.5 * c
    np.testing.assert_allclose(_read(tmp_path, "gemm", "f8", 4, 4), c)
    step = b.reshape(-1, order="F")[:8:2]  # every second element
    flat = c.reshape(-1, order="F").copy()
    flat[:3] = (1.5 * a.T @ step)[::-1] - 0.5 * flat[:3]  # the last element comes first
    c = flat.reshape(4, 4, order="F")
    np.testing.assert_allclose(_read(tmp_path, "gemv", "f8", 4, 4), c)
    c = c + 1.5 * np.outer(a[:, 0], b[:, 0])
    np.testing.assert_allclose(_read(tmp_path, "ger", "f8", 4, 4), c)
    whole = np.tril(c) + np.tril(c, -1).T
    a, narrow = (each.reshape(3, 4, order="F") for each in (a, b))
    a = 1.5 * narrow @ whole - 0.5 * a
    np.testing.assert_allclose(_read(tmp_path, "symm", "f8", 3, 4), a)
    b = np.asarray(np.linalg.solve(np.triu(c).T, 1.5 * b))
    np.testing.assert_allclose(_read(tmp_path, "trsm", "f8", 4, 3), b)
    a = 1.5 * b.reshape(3, 4, order="F") @ (np.tril(c, -1) + np.eye(4))
    np.testing.assert_allclose(_read(tmp_path, "trmm", "f8", 3, 4), a)
    flat, other = a.reshape(-1, order="F"), b.reshape(-1, order="F")
    np.testing.assert_allclose(_read(tmp_path, "nrm2", "f8", 1), np.linalg.norm(flat))
    assert _read(tmp_path, "amax", "i4", 1) == np.abs(flat).argmax() + 1
    np.testing.assert_allclose(_read(tmp_path, "dot", "f8", 1), flat[::2] @ other[5::-1])

    for number, found in enumerate(np.fromfile(tmp_path / "batched", "c16").reshape(2, 4)):
        of = [each.reshape(-1, order="F").reshape(2, 4)[number].reshape(2, 2, order="F")
              for each in (x, y)]  # fmt: skip
        np.testing.assert_allclose(found.reshape(2, 2, order="F"), 1j * of[0].conj().T @ of[1])
    np.testing.assert_allclose(
        _read(tmp_path, "dotc", "c16", 1),
        np.vdot(x.reshape(-1, order="F"), y.reshape(-1, order="F")),
    )
    wanted = 2 * p.astype("f4") @ q.astype("f4")
    np.testing.assert_allclose(_read(tmp_path, "mixed", "f4", 2, 2), wanted, rtol=1e-6)
    halves = (0.5 * p.astype("f4").T @ q.astype("f4")).astype("f2")
    np.testing.assert_allclose(_read(tmp_path, "halves", "f2", 2, 2), halves, rtol=2e-3)
    assert _calls(done) == [
        "cublasDgemm", "cublasDgemv", "cublasDger", "cublasDsymm", "cublasDtrsm", "cublasDtrmm",
        "cublasDnrm2", "cublasIdamax", "cublasDdot", "cublasZgemmStridedBatched", "cublasZdotc",
        "cublasGemmEx", "cublasGemmEx",
    ]  # fmt: skip
    assert len(done.trace.launches) == 1


FOURIER = (
    "#include <cufftXt.h>\n#include <curand.h>\n#include <cusparse.h>\n"
    + r"""
typedef cufftDoubleComplex Z;
static void fourier() {
    cufftHandle plan; int n[2] = {6, 7};
    Z *x = read<Z>("x", 84), *y; CHECK(cudaMallocManaged(&y, 84 * 16));
    DO(cufftPlanMany(&plan, 2, n, 0, 1, 0, 0, 1, 0, CUFFT_Z2Z, 2));
    DO(cufftExecZ2Z(plan, x, y, CUFFT_FORWARD)); write("z2z", y, 84 * 16);
    DO(cufftExecZ2Z(plan, y, y, CUFFT_INVERSE)); write("back", y, 84 * 16); DO(cufftDestroy(plan));
    float *r = read<float>("r", 30); cufftComplex *h; CHECK(cudaMallocManaged(&h, 160));
    DO(cufftPlan2d(&plan, 5, 6, CUFFT_R2C)); DO(cufftExecR2C(plan, r, h)); write("r2c", h, 160);
    DO(cufftDestroy(plan));
    DO(cufftPlan2d(&plan, 5, 6, CUFFT_C2R)); DO(cufftExecC2R(plan, h, r)); write("c2r", r, 120);
    CHECK(cudaMemset(h, 0, 160));
    for (int i = 0; i < 5; i++) for (int j = 0; j < 6; j++) ((float *)h)[8 * i + j] = r[6 * i + j];
    DO(cufftDestroy(plan)); DO(cufftPlan2d(&plan, 5, 6, CUFFT_R2C));
    DO(cufftExecR2C(plan, (float *)h, h)); write("in_place", h, 160);
    printf("%d\n", (int)cufftExecC2C(plan, h, h, 1));
    int both[2] = {0, 0}, away[2] = {0, 1}; size_t work[2]; cudaLibXtDesc *parts;
    DO(cufftCreate(&plan)); printf("%d\n", (int)cufftXtSetGPUs(plan, 2, away));
    DO(cufftXtSetGPUs(plan, 2, both)); DO(cufftMakePlan2d(plan, 6, 7, CUFFT_Z2Z, work));
    DO(cufftXtMalloc(plan, &parts, CUFFT_XT_FORMAT_INPLACE));
    DO(cufftXtMemcpy(plan, parts, x, CUFFT_COPY_HOST_TO_DEVICE));
    DO(cufftXtExecDescriptor(plan, parts, parts, CUFFT_FORWARD));
    DO(cufftXtMemcpy(plan, y, parts, CUFFT_COPY_DEVICE_TO_HOST)); write("parts", y, 42 * 16);
    printf("%d %d\n", parts->descriptor->nGPUs, (int)parts->descriptor->size[1]);
    DO(cufftXtFree(parts));
}
static void draw() {
    curandGenerator_t g; double *u, *v; float *w; unsigned *k; const int n = 10000;
    CHECK(cudaMallocManaged(&u, 8 * n)); CHECK(cudaMallocManaged(&v, 8 * n));
    CHECK(cudaMallocManaged(&w, 4 * n)); CHECK(cudaMallocManaged(&k, 4 * n));
    DO(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT));
    DO(curandSetPseudoRandomGeneratorSeed(g, 1234));
    DO(curandGenerateUniformDouble(g, u, n)); write("uniform", u, 8 * n);
    DO(curandSetGeneratorOffset(g, 100)); DO(curandGenerateUniformDouble(g, v, n - 100));
    printf("again %d\n", memcmp(u + 100, v, 8 * (n - 100)));
    DO(curandGenerateNormal(g, w, n, 3, 2)); write("normal", w, 4 * n);
    DO(curandGeneratePoisson(g, k, n, 4)); write("poisson", k, 4 * n);
    printf("odd %d\n", (int)curandGenerateNormal(g, w, 3, 0, 1));
    DO(curandDestroyGenerator(g)); DO(curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32));
    DO(curandSetQuasiRandomGeneratorDimensions(g, 2)); DO(curandGenerateUniformDouble(g, v, 8));
    write("quasi", v, 64);
}
static void sparse() {
    cusparseHandle_t h; DO(cusparseCreate(&h));
    int *starts = read<int>("starts", 5), *columns = read<int>("columns", 7);
    double *values = read<double>("values", 7), *x = read<double>("v", 8), *y, *m, a = 2, b = -1;
    CHECK(cudaMallocManaged(&y, 64)); CHECK(cudaMallocManaged(&m, 64)); memcpy(y, x, 64);
    cusparseSpMatDescr_t mat; cusparseDnVecDescr_t vx, vy; cusparseDnMatDescr_t mx, my; size_t n;
    DO(cusparseCreateCsr(&mat, 4, 4, 7, starts, columns, values, CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ONE, CUDA_R_64F));
    DO(cusparseCreateDnVec(&vx, 4, x, CUDA_R_64F)); DO(cusparseCreateDnVec(&vy, 4, y, CUDA_R_64F));
    DO(cusparseSpMV_bufferSize(h, CUSPARSE_OPERATION_TRANSPOSE, &a, mat, vx, &b, vy, CUDA_R_64F,
                               CUSPARSE_SPMV_ALG_DEFAULT, &n));
    DO(cusparseSpMV(h, CUSPARSE_OPERATION_TRANSPOSE, &a, mat, vx, &b, vy, CUDA_R_64F,
                    CUSPARSE_SPMV_ALG_DEFAULT, 0));
    write("spmv", y, 32);
    DO(cusparseCreateDnMat(&mx, 4, 2, 2, x, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    DO(cusparseCreateDnMat(&my, 4, 2, 4, m, CUDA_R_64F, CUSPARSE_ORDER_COL)); b = 0;
    DO(cusparseSpMM(h, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &a,
            mat, mx,
                    &b, my, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, 0));
    write("spmm", m, 64);
    cusparseFillMode_t lower = CUSPARSE_FILL_MODE_LOWER; cusparseSpSVDescr_t solver;
    DO(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &lower, sizeof lower));
    DO(cusparseSpSV_createDescr(&solver));
    DO(cusparseSpSV_solve(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &a, mat, vx, vy, CUDA_R_64F,
                          CUSPARSE_SPSV_ALG_DEFAULT, solver));
    write("spsv", y, 32);
}
int main() { double *one; CHECK(cudaMalloc(&one, 8)); touch<<<1, 1>>>(one); fourier(); draw();
sparse(); }
"""
)


def test_transforms_random_numbers_and_sparse_products_are_numpys(tmp_path: Path) -> None:
    dice = np.random.default_rng(2)
    x = dice.normal(size=(2, 6, 7)) + 1j * dice.normal(size=(2, 6, 7))
    real = dice.normal(size=(5, 6)).astype("f4")
    dense = np.array([[2, 0, 1, 0], [1, 3, 0, 0], [0, 0, 4, 0], [0, 5, 0, 6]], "f8")
    rows, columns = np.nonzero(dense)
    for name, array in {
        "x": x, "r": real, "v": dice.normal(size=8), "values": dense[rows, columns],
        "columns": columns.astype("i4") + 1,
        "starts": np.r_[0, np.cumsum(np.bincount(rows))].astype("i4") + 1,
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(array.tobytes())
    done = calculate(tmp_path, "fourier")
    assert (done.status, done.out) == (0, "1\n11\n2 336\nagain 0\nodd 105\n"), done.err

    wanted = np.fft.fft2(x)
    np.testing.assert_allclose(np.fromfile(tmp_path / "z2z", "c16"), wanted.ravel())
    np.testing.assert_allclose(np.fromfile(tmp_path / "parts", "c16"), wanted[0].ravel())
    np.testing.assert_allclose(np.fromfile(tmp_path / "back", "c16"), 42 * x.ravel())
    half = np.fft.rfft2(real).ravel()
    np.testing.assert_allclose(np.fromfile(tmp_path / "r2c", "c8"), half, rtol=1e-5, atol=1e-5)
    found = np.fromfile(tmp_path / "c2r", "f4")
    np.testing.assert_allclose(found, 30 * real.ravel(), rtol=1e-5, atol=1e-5)
    found = np.fromfile(tmp_path / "in_place", "c8")
    np.testing.assert_allclose(found, 30 * half, rtol=1e-4, atol=1e-3)

    uniform = np.fromfile(tmp_path / "uniform", "f8")
    assert 0 < uniform.min() < 0.001
    assert 0.999 < uniform.max() <= 1
    assert abs(uniform.mean() - 1 / 2) < 4 / np.sqrt(12 * 10_000)  # four deviations of the mean
    normal = np.fromfile(tmp_path / "normal", "f4")
    assert abs(normal.mean() - 3) < 4 * 2 / 100
    assert abs(normal.std() - 2) < 4 * 2 / np.sqrt(20_000)
    drawn = np.fromfile(tmp_path / "poisson", "u4")
    assert abs(drawn.mean() - 4) < 4 * 2 / 100  # its variance is its mean
    quasi = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 1 / 3, 2 / 3, 1 / 9, 4 / 9]  # in base 2, then in base 3
    np.testing.assert_allclose(np.fromfile(tmp_path / "quasi", "f8"), quasi)

    v = np.fromfile(tmp_path / "v", "f8")
    np.testing.assert_allclose(np.fromfile(tmp_path / "spmv", "f8"), 2 * dense.T @ v[:4] - v[:4])
    wanted = 2 * dense @ v.reshape(4, 2)
    np.testing.assert_allclose(_read(tmp_path, "spmm", "f8", 4, 2), wanted)
    wanted = np.linalg.solve(np.tril(dense), 2 * v[:4])
    np.testing.assert_allclose(np.fromfile(tmp_path / "spsv", "f8"), wanted)
    assert _calls(done)[-3:] == ["cusparseSpMV", "cusparseSpMM", "cusparseSpSV_solve"]


SPARSE = (
    "#include <cusparse_v2.h>\n"
    + r"""
#define R64_OF CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F
#define R64 CUDA_R_64F, CUSPARSE_INDEX_BASE_ZERO
#define CSR(matrix, rows, columns, count, s, c, v) DO(cusparseCreateCsr(&matrix, rows, columns, \
    count, s, c, v, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F))
const cusparseOperation_t N = CUSPARSE_OPERATION_NON_TRANSPOSE;
template <typename T> T *room(int count) {
    T *made; CHECK(cudaMallocManaged(&made, count * sizeof(T))); return made;
}
int main() {
    double *one; CHECK(cudaMalloc(&one, 8)); touch<<<1, 1>>>(one);
    cusparseHandle_t h; DO(cusparseCreate(&h));
    double *dense = read<double>("dense", 20), *values = room<double>(20), a = 2, b = 0, dot;
    int *starts = room<int>(5), *columns = room<int>(20), *rows = room<int>(20);
    cusparseDnMatDescr_t from, back, wide; cusparseSpMatDescr_t m, t, p; size_t n;
    long long r, c, count;
    DO(cusparseCreateDnMat(&from, 4, 5, 5, dense, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    CSR(m, 4, 5, 0, starts, 0, 0);
    DO(cusparseDenseToSparse_bufferSize(h, from, m, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, &n));
    DO(cusparseDenseToSparse_analysis(h, from, m, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, 0));
    DO(cusparseSpMatGetSize(m, (int64_t *)&r, (int64_t *)&c, (int64_t *)&count));
    DO(cusparseCsrSetPointers(m, starts, columns, values));
    DO(cusparseDenseToSparse_convert(h, from, m, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, 0));
    write("columns", columns, 4 * count); write("starts", starts, 20);
    write("csr", values, 8 * count);
    DO(cusparseXcsr2coo(h, starts, count, 4, rows, CUSPARSE_INDEX_BASE_ZERO));
    write("rows", rows, 4 * count);

    int *turned = room<int>(6), *lines = room<int>(20); double *moved = room<double>(20);
    DO(cusparseCsr2cscEx2(h, 4, 5, count, values, starts, columns, moved, turned, lines, CUDA_R_64F,
                          CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                          CUSPARSE_CSR2CSC_ALG1, 0));
    CSR(t, 5, 4, count, turned, lines, moved); /* by columns: the matrix turned, by rows */
    double *flat = room<double>(20);
    DO(cusparseCreateDnMat(&back, 5, 4, 5, flat, CUDA_R_64F, CUSPARSE_ORDER_COL));
    DO(cusparseSparseToDense(h, t, back, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, 0));
    write("turned", flat, 160);

    cusparseSpGEMMDescr_t product; int *ps = room<int>(5); DO(cusparseSpGEMM_createDescr(&product));
    CSR(p, 4, 4, 0, ps, 0, 0);
    const auto alg = CUSPARSE_SPGEMM_DEFAULT; void *buffer = room<char>(256);
    DO(cusparseSpGEMM_workEstimation(h, N, N, &a, m, t, &b, p, CUDA_R_64F, alg, product, &n, 0));
    DO(cusparseSpGEMM_compute(h, N, N, &a, m, t, &b, p, CUDA_R_64F, alg, product, &n, 0));
    DO(cusparseSpGEMM_compute(h, N, N, &a, m, t, &b, p, CUDA_R_64F, alg, product, &n, buffer));
    DO(cusparseSpMatGetSize(p, (int64_t *)&r, (int64_t *)&c, (int64_t *)&count));
    double *pv = room<double>(count); int *pc = room<int>(count);
    DO(cusparseCsrSetPointers(p, ps, pc, pv));
    DO(cusparseSpGEMM_copy(h, N, N, &a, m, t, &b, p, CUDA_R_64F, alg, product));
    double *square = room<double>(16);
    DO(cusparseCreateDnMat(&wide, 4, 4, 4, square, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    DO(cusparseSparseToDense(h, p, wide, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, 0));
    write("product", square, 128);
    DO(cusparseSDDMM(h, N, N, &a, from, back, &b, p, CUDA_R_64F, CUSPARSE_SDDMM_ALG_DEFAULT, 0));
    write("sampled", pv, 8 * count);

    cusparseFillMode_t upper = CUSPARSE_FILL_MODE_UPPER; double *x = room<double>(16);
    DO(cusparseSpMatSetAttribute(p, CUSPARSE_SPMAT_FILL_MODE, &upper, sizeof upper));
    DO(cusparseCreateDnMat(&back, 4, 4, 4, x, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    DO(cusparseSpSM_solve(h, N, N, &a, p, wide, back, CUDA_R_64F, CUSPARSE_SPSM_ALG_DEFAULT, 0));
    write("solved", x, 128);

    int *order = room<int>(20), *i = read<int>("i", 6), *j = read<int>("j", 6);
    DO(cusparseCreateIdentityPermutation(h, 6, order));
    DO(cusparseXcoosortByRow(h, 4, 5, 6, i, j, order, 0));
    write("order", order, 24); DO(cusparseXcoo2csr(h, i, 6, 4, ps, CUSPARSE_INDEX_BASE_ZERO));
    write("counted", ps, 20);
    cusparseSpVecDescr_t sparse; cusparseDnVecDescr_t all; double *some = room<double>(6);
    DO(cusparseCreateSpVec(&sparse, 20, 6, order, some, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    DO(cusparseCreateDnVec(&all, 20, dense, CUDA_R_64F));
    DO(cusparseGather(h, all, sparse)); write("gathered", some, 48);
    DO(cusparseSpVV(h, N, sparse, all, &dot, CUDA_R_64F, 0)); printf("%g\n", dot); b = 3;
    DO(cusparseAxpby(h, &a, sparse, &b, all)); DO(cusparseScatter(h, sparse, all));
    write("scattered", dense, 160);

    double *plain = read<double>("blocks", 24), *ell = room<double>(16), *thin = room<double>(12);
    int *of_blocks = read<int>("of_blocks", 4); a = 2; b = 0;
    DO(cusparseCreateDnMat(&from, 4, 6, 6, plain, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    DO(cusparseCreateBlockedEll(&m, 4, 6, 2, 4, of_blocks, ell, CUSPARSE_INDEX_32I, R64_OF));
    DO(cusparseDenseToSparse_analysis(h, from, m, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, 0));
    DO(cusparseDenseToSparse_convert(h, from, m, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, 0));
    write("ell", ell, 128);
    DO(cusparseCreateDnMat(&back, 6, 2, 6, plain, CUDA_R_64F, CUSPARSE_ORDER_COL));
    DO(cusparseCreateDnMat(&wide, 4, 2, 2, thin, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    DO(cusparseSpMM(h, N, N, &a, m, back, &b, wide, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, 0));
    write("by_blocks", thin, 64);
}
"""
)


BLOCKS = np.array(
    [[0, 0, 1, 2, 0, 0], [0, 0, 3, 4, 0, 0], [5, 6, 0, 0, 7, 8], [9, 10, 0, 0, 11, 12]], "f8"
)
"""Blocks of 2 x 2: column 1 in the first row of blocks, columns 0 and 2 in the second."""


def test_sparse_matrices_in_other_forms_and_their_products_are_numpys(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    dense = dice.integers(1, 9, (4, 5)) * (dice.random((4, 5)) < 0.6)
    dense[0, 0], dense[3, 4] = 3, 5
    i, j = np.array([2, 0, 3, 0, 2, 1]), np.array([1, 4, 0, 2, 0, 3])
    for name, array in {
        "dense": dense.astype("f8"),
        "blocks": BLOCKS,
        "of_blocks": np.array([1, -1, 0, 2], "i4"),
        "i": i.astype("i4"),
        "j": j.astype("i4"),
    }.items():
        (tmp_path / name).write_bytes(array.tobytes())
    done = calculate(tmp_path, "sparse")

    def found(name: str, kind: str = "i4") -> list[float]:
        numbers: list[float] = np.fromfile(tmp_path / name, kind).tolist()
        return numbers

    order = np.lexsort((j, i))
    some = dense.ravel()[order]
    assert (done.status, done.out) == (0, f"{some @ some}\n"), done.err
    rows, columns = np.nonzero(dense)
    assert found("columns") == columns.tolist()
    assert found("rows") == rows.tolist()
    assert found("starts") == [0, *np.cumsum(np.bincount(rows, minlength=4))]
    assert found("csr", "f8") == dense[rows, columns].tolist()
    assert found("turned", "f8") == dense.ravel().tolist()  # by columns
    product = 2 * dense @ dense.T
    assert found("product", "f8") == product.ravel().tolist()
    assert found("sampled", "f8") == product[product != 0].tolist()
    solved = np.array(found("solved", "f8")).reshape(4, 4)
    np.testing.assert_allclose(np.triu(product) @ solved, 2.0 * product, atol=1e-9)
    assert found("order") == order.tolist()
    assert found("counted") == [0, *np.cumsum(np.bincount(i, minlength=4))]
    assert found("gathered", "f8") == some.tolist()
    wanted = 3 * dense.ravel()
    wanted[order] = some
    assert found("scattered", "f8") == wanted.tolist()
    ell = [[1, 2, 0, 0], [3, 4, 0, 0], [5, 6, 7, 8], [9, 10, 11, 12]]  # as cuSPARSE's own sample
    assert found("ell", "f8") == np.ravel(ell).tolist()
    thin = BLOCKS.ravel()[:12].reshape(6, 2, order="F")
    assert found("by_blocks", "f8") == (2 * BLOCKS @ thin).ravel().tolist()

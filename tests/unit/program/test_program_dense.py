"""Programs that call cuBLASLt and cuSOLVER: the host computes what NumPy says, uncounted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from program_run import FILES, Done, record_built, together

pytestmark = pytest.mark.slow

SOLVER = (
    "#include <cusolverDn.h>\n"
    + r"""
#define REAL CUDA_R_64F
template <class T> T *room(int n) { T *x; CHECK(cudaMallocManaged(&x, n * sizeof(T))); return x; }
int main() {
    double *one; CHECK(cudaMalloc(&one, 8)); touch<<<1, 1>>>(one);
    cusolverDnHandle_t h; DO(cusolverDnCreate(&h));
    cusolverDnParams_t p; DO(cusolverDnCreateParams(&p));
    double *a = read<double>("a", 20), *q = read<double>("a", 20), *c = read<double>("c", 15);
    double *tau = room<double>(4), *w = room<double>(99); int *info = room<int>(1), n;
    DO(cusolverDnDgeqrf_bufferSize(h, 5, 4, q, 5, &n));
    DO(cusolverDnDgeqrf(h, 5, 4, q, 5, tau, w, n, info)); write("r", q, 160);
    DO(cusolverDnDormqr(h, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, 5, 3, 4, q, 5, tau, c, 5, w, n, info));
    write("qtc", c, 120);
    DO(cusolverDnDorgqr(h, 5, 4, 4, q, 5, tau, w, n, info)); write("q", q, 160);
    double *s = room<double>(4), *u = room<double>(25), *v = room<double>(16);
    double *x = read<double>("a", 20);
    DO(cusolverDnDgesvd(h, 'A', 'S', 5, 4, x, 5, s, u, 5, v, 4, w, n, w, info));
    write("u", u, 200); write("s", s, 32); write("vt", v, 128);
    gesvdjInfo_t how; DO(cusolverDnCreateGesvdjInfo(&how)); x = read<double>("a", 20);
    DO(cusolverDnDgesvdj(h, CUSOLVER_EIG_MODE_VECTOR, 1, 4, 5, x, 4, s, u, 4, v, 5, w, n, info,
                         how));
    write("wide_u", u, 128); write("wide_s", s, 32);
    double *l = read<double>("spd", 16), *b = read<double>("c", 8); size_t device, host;
    DO(cusolverDnXpotrf_bufferSize(h, p, CUBLAS_FILL_MODE_LOWER, 4, REAL, l, 4, REAL, &device,
                                   &host));
    DO(cusolverDnXpotrf(h, p, CUBLAS_FILL_MODE_LOWER, 4, REAL, l, 4, REAL, w, device, w, host,
                        info));
    DO(cusolverDnXpotrs(h, p, CUBLAS_FILL_MODE_LOWER, 4, 2, REAL, l, 4, REAL, b, 4, info));
    write("cholesky", b, 64);
    l = read<double>("spd", 16), b = read<double>("c", 8); long long *pivots = room<long long>(4);
    l[0] = 0; /* so that the first pivot is another row */
    DO(cusolverDnXgetrf(h, p, 4, 4, REAL, l, 4, (int64_t *)pivots, REAL, w, 1, w, 1, info));
    DO(cusolverDnXgetrs(h, p, CUBLAS_OP_N, 4, 2, REAL, l, 4, (int64_t *)pivots, REAL, b, 4, info));
    write("lu", b, 64); printf("%d\n", *info);
    x = read<double>("a", 20);
    DO(cusolverDnXgesvdr(h, p, 'S', 'S', 5, 4, 2, 2, 2, REAL, x, 5, REAL, s, REAL, u, 5, REAL, v, 4,
                         REAL, w, 1, w, 1, info));
    write("some_u", u, 80); write("some_s", s, 16); write("some_v", v, 64);
    l = read<double>("spd", 16);
    DO(cusolverDnXtrtri(h, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, 4, REAL, l, 4, w, 1, w, 1,
                        info));
    write("inverse", l, 128);
    cusolverDnIRSParams_t how_far; cusolverDnIRSInfos_t infos; int steps; x = room<double>(8);
    l = read<double>("spd", 16), b = read<double>("c", 8);
    DO(cusolverDnIRSParamsCreate(&how_far)); DO(cusolverDnIRSInfosCreate(&infos));
    printf("%d ", (int)cusolverDnIRSXgesv(h, how_far, infos, 4, 2, l, 4, b, 4, x, 4, w, 1, &steps,
                                          info));
    DO(cusolverDnIRSParamsSetSolverPrecisions(how_far, CUSOLVER_R_64F, CUSOLVER_R_32F));
    DO(cusolverDnIRSParamsSetRefinementSolver(how_far, CUSOLVER_IRS_REFINE_CLASSICAL));
    DO(cusolverDnIRSXgesv(h, how_far, infos, 4, 2, l, 4, b, 4, x, 4, w, 1, &steps, info));
    write("refined", x, 64); printf("%d %d ", steps > 0 && steps < 9, *info);
    l = read<double>("huge", 16); /* more than a half holds */
    DO(cusolverDnDHgesv(h, 4, 2, l, 4, 0, b, 4, x, 4, w, 1, &steps, info));
    write("fell_back", x, 64); printf("%d\n", steps);
    printf("%d\n", (int)cusolverDnXpotrs(h, p, CUBLAS_FILL_MODE_LOWER, 4, 1, REAL, l, 4, CUDA_R_32F,
                                         b, 4, info));
}
"""
)


def _read(folder: Path, name: str, *shape: int) -> NDArray[Any]:
    return np.fromfile(folder / name, "f8").reshape(shape, order="F")


def calculate(folder: Path, name: str) -> Done:
    """Record one of the programs, which are built as one."""
    source = together(FILES, {"solver": SOLVER, "products": PRODUCTS})
    return record_built(folder, source, name, words=("-lcusolver", "-lcublasLt"))


def test_factors_and_singular_values_are_numpys(tmp_path: Path) -> None:
    dice = np.random.default_rng(4)
    a, c = dice.normal(size=(5, 4)), dice.normal(size=(5, 3))
    spd = a.T @ a + np.eye(4)
    for name, array in {"a": a, "c": c, "spd": spd, "huge": 1e6 * spd}.items():
        (tmp_path / name).write_bytes(array.tobytes(order="F"))
    done = calculate(tmp_path, "solver")
    assert (done.status, done.out) == (0, "0\n14 1 0 -2\n9\n"), done.err

    q, r = _read(tmp_path, "q", 5, 4), np.triu(_read(tmp_path, "r", 5, 4))[:4]
    np.testing.assert_allclose(q @ r, a)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-12)
    assert (np.abs(r.diagonal()) > 0).all()
    np.testing.assert_allclose(_read(tmp_path, "qtc", 5, 3)[:4], q.T @ c, atol=1e-12)
    u, s, vt = (_read(tmp_path, *each) for each in (("u", 5, 5), ("s", 4), ("vt", 4, 4)))
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False))
    np.testing.assert_allclose((u[:, :4] * s) @ vt, a, atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(5), atol=1e-12)
    wide = a.reshape(-1, order="F").reshape(4, 5, order="F")
    np.testing.assert_allclose(_read(tmp_path, "wide_s", 4), np.linalg.svd(wide, compute_uv=False))
    wide_u = _read(tmp_path, "wide_u", 4, 4)
    squares = _read(tmp_path, "wide_s", 4) ** 2
    np.testing.assert_allclose((wide_u * squares) @ wide_u.T, wide @ wide.T, atol=1e-12)
    b = c.reshape(-1, order="F")[:8].reshape(4, 2, order="F")
    np.testing.assert_allclose(_read(tmp_path, "cholesky", 4, 2), np.linalg.solve(spd, b))
    np.testing.assert_allclose(_read(tmp_path, "refined", 4, 2), np.linalg.solve(spd, b))
    np.testing.assert_allclose(_read(tmp_path, "fell_back", 4, 2), np.linalg.solve(1e6 * spd, b))
    np.testing.assert_allclose(
        np.triu(_read(tmp_path, "inverse", 4, 4)) @ np.triu(spd), np.eye(4), atol=1e-12
    )
    some = [_read(tmp_path, *each) for each in (("some_u", 5, 2), ("some_s", 2), ("some_v", 4, 2))]
    np.testing.assert_allclose(
        (some[0] * some[1]) @ some[2].T, (u[:, :2] * s[:2]) @ vt[:2], atol=1e-12
    )
    spd[0, 0] = 0
    np.testing.assert_allclose(_read(tmp_path, "lu", 4, 2), np.linalg.solve(spd, b))


PRODUCTS = (
    "#include <cublasLt.h>\n#include <cuda_fp8.h>\n"
    + r"""
#define SET(what, value) DO(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_##what, &value, \
    sizeof value))
static cublasLtMatrixLayout_t layout(cudaDataType type, int rows, int columns, int ld, int order) {
    cublasLtMatrixLayout_t made; DO(cublasLtMatrixLayoutCreate(&made, type, rows, columns, ld));
    DO(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
    return made;
}
int main() {
    double *one; CHECK(cudaMalloc(&one, 8)); touch<<<1, 1>>>(one);
    cublasLtHandle_t h; DO(cublasLtCreate(&h)); cublasLtMatmulDesc_t d;
    DO(cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    float *fa = read<float>("a", 15), *fb = read<float>("b", 12), *bias = read<float>("bias", 5);
    __nv_bfloat16 *a, *b, *narrow; float *out, two = 2, zero = 0, half = 0.5f;
    CHECK(cudaMallocManaged(&a, 30)); CHECK(cudaMallocManaged(&b, 24));
    CHECK(cudaMallocManaged(&out, 80)); CHECK(cudaMallocManaged(&narrow, 40));
    for (int i = 0; i < 15; i++) a[i] = fa[i];
    for (int i = 0; i < 12; i++) b[i] = fb[i];
    auto la = layout(CUDA_R_16BF, 3, 5, 3, CUBLASLT_ORDER_COL); /* transposed in the product */
    auto lb = layout(CUDA_R_16BF, 3, 4, 4, CUBLASLT_ORDER_ROW);
    auto lc = layout(CUDA_R_32F, 5, 4, 5, CUBLASLT_ORDER_COL);
    cublasOperation_t turned = CUBLAS_OP_T; SET(TRANSA, turned);
    cublasLtEpilogue_t after = CUBLASLT_EPILOGUE_RELU_BIAS; SET(EPILOGUE, after);
    SET(BIAS_POINTER, bias);
    cublasLtMatmulPreference_t p; DO(cublasLtMatmulPreferenceCreate(&p)); int found;
    cublasLtMatmulHeuristicResult_t r[3];
    DO(cublasLtMatmulAlgoGetHeuristic(h, d, la, lb, lc, lc, p, 3, r, &found));
    DO(cublasLtMatmul(h, d, &two, a, la, b, lb, &zero, out, lc, out, lc, &r[0].algo, 0, 0, 0));
    write("relu", out, 80);
    __nv_fp8_e4m3 *a8, *b8; float *scale; CHECK(cudaMallocManaged(&a8, 15));
    CHECK(cudaMallocManaged(&b8, 12)); CHECK(cudaMallocManaged(&scale, 4)); *scale = half;
    for (int i = 0; i < 15; i++) a8[i] = __nv_fp8_e4m3(fa[i]), fa[i] = (float)a8[i];
    for (int i = 0; i < 12; i++) b8[i] = __nv_fp8_e4m3(fb[i]), fb[i] = (float)b8[i];
    write("a8", fa, 60); write("b8", fb, 48);
    after = CUBLASLT_EPILOGUE_GELU; SET(EPILOGUE, after); SET(A_SCALE_POINTER, scale);
    auto la8 = layout(CUDA_R_8F_E4M3, 3, 5, 3, CUBLASLT_ORDER_COL);
    auto lb8 = layout(CUDA_R_8F_E4M3, 3, 4, 4, CUBLASLT_ORDER_ROW);
    auto ln = layout(CUDA_R_16BF, 5, 4, 5, CUBLASLT_ORDER_COL);
    DO(cublasLtMatmul(h, d, &two, a8, la8, b8, lb8, &zero, narrow, ln, narrow, ln, 0, 0, 0, 0));
    for (int i = 0; i < 20; i++) out[i] = (float)narrow[i];
    write("gelu", out, 80); after = CUBLASLT_EPILOGUE_BGRADA; SET(EPILOGUE, after);
    printf("%d %d\n", found, (int)cublasLtMatmul(h, d, &two, a, la, b, lb, &zero, out, lc, out, lc,
                                                 0, 0, 0, 0));
    after = CUBLASLT_EPILOGUE_DEFAULT; SET(EPILOGUE, after);
    printf("%d\n", (int)cublasLtMatmul(h, d, &two, a, lb, b, la, &zero, out, lc, out, lc, 0, 0, 0,
                                       0));
}
"""
)


def test_products_with_what_comes_behind_them_are_numpys(tmp_path: Path) -> None:
    dice = np.random.default_rng(5)
    a, b, bias = (dice.integers(-8, 9, n).astype("f4") / 4 for n in (15, 12, 5))
    for name, array in {"a": a, "b": b, "bias": bias}.items():
        (tmp_path / name).write_bytes(array.tobytes())
    done = calculate(tmp_path, "products")
    assert (done.status, done.out) == (0, "1 15\n7\n"), done.err
    assert "cublasLtMatmul with this epilogue" in done.err

    def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(left.reshape(5, 3) @ right.reshape(3, 4))

    found = np.fromfile(tmp_path / "relu", "f4").reshape(5, 4, order="F")
    np.testing.assert_array_equal(found, np.maximum(2 * product(a, b) + bias[:, None], 0))
    x = product(*(np.fromfile(tmp_path / name, "f4") for name in ("a8", "b8"))).astype("f8")
    wanted = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    found = np.fromfile(tmp_path / "gelu", "f4").reshape(5, 4, order="F")
    np.testing.assert_allclose(found, wanted, rtol=1 / 256, atol=1e-6)  # bfloat16 has 8 bits
    calls = [event.name for event in done.trace.manifest.events if event.kind == "library"]
    assert calls == ["cublasLtMatmul"] * 2
    assert len(done.trace.launches) == 1

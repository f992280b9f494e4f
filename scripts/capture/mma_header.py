"""Instructions of loops that multiply fragments, with NVIDIA's `mma.h`: cutrace's are compared.

python mma_header.py OUT: needs nvcc and NVIDIA's assembler, no GPU. Writes for kernels of every
type, shape and order of fragments how many machine instructions the loop over the sum has on sm_90.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from cutrace.tracer.front.sass import sections
from cutrace.traces.machine_schedule import CODE_BYTES

TEMPLATE = r"""
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
enum { GLOBAL, SHARED, ADDED };
template <class T, class P, class R, int m, int n, int k, class LA, class LB, int how> __device__
void multiply(const P *a, const P *b, R *c, int size, wmma::layout_t layout)
{
    int row = blockIdx.y * m, col = (blockIdx.x * blockDim.y + threadIdx.y) * n;
    wmma::fragment<wmma::matrix_a, m, n, k, T, LA> fa;
    wmma::fragment<wmma::matrix_b, m, n, k, T, LB> fb;
    wmma::fragment<wmma::accumulator, m, n, k, R> fc;
    __shared__ P sa[32 * 32], sb[32 * 32];
    if (how == ADDED) wmma::load_matrix_sync(fc, c + row * size + col, size, layout);
    else wmma::fill_fragment(fc, R(0));
    #pragma unroll 1
    for (int i = 0; i < size; i += k) {
        if (how == SHARED) {
            __syncthreads();
            sa[threadIdx.x] = a[i + threadIdx.x];
            sb[threadIdx.x] = b[i * size + threadIdx.x];
            __syncthreads();
            wmma::load_matrix_sync(fa, sa + (threadIdx.y & 1) * 16, 32);
            wmma::load_matrix_sync(fb, sb + (threadIdx.y & 2) * 16, 32);
        } else {
            wmma::load_matrix_sync(fa, a + row * size + i, size);
            wmma::load_matrix_sync(fb, b + i * size + col, size);
        }
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * size + col, fc, size, layout);
}
typedef wmma::row_major R;
typedef wmma::col_major C;
"""
KERNEL = """
extern "C" __global__ void {name}(const {value} *a, const {value} *b, {sum} *c, int size)
{{ multiply<{type}, {value}, {sum}, {shape}, {left}, {right}, {how}>(a, b, c, size, {layout}); }}
"""
TYPES = {
    "half": ("half", "half", "float"),
    "halves": ("half", "half", "half"),
    "byte": ("signed char", "signed char", "int"),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", "float"),
    "tf32": ("wmma::precision::tf32", "float", "float"),
    "double": ("double", "double", "double"),
}
SHAPES = {"tf32": ("16, 16, 8",), "double": ("8, 8, 4",)}


def source(types: tuple[str, ...]) -> str:
    """Return the kernels of these types."""
    texts = [TEMPLATE]
    for kind in types:
        fragment, value, total = TYPES[kind]
        for shape in SHAPES.get(kind, ("16, 16, 16", "32, 8, 16", "8, 32, 16")):
            for left, right, how in ORDERS:
                name = "_".join((kind, *shape.split(", "), left, right, how.lower()))
                layout = "wmma::mem_col_major" if how == "ADDED" else "wmma::mem_row_major"
                texts.append(
                    KERNEL.format(
                        name=name,
                        value=value,
                        sum=total,
                        type=fragment,
                        shape=shape,
                        left=left,
                        right=right,
                        how=how,
                        layout=layout,
                    )
                )
    return "".join(texts)


ORDERS = [(a, b, how) for a in "RC" for b in "RC" for how in ("GLOBAL", "SHARED")]
ORDERS.append(("R", "C", "ADDED"))
_BRA, _ALWAYS = 0x147, 7


def loops(cubin: bytes) -> Iterator[tuple[str, int]]:
    """Yield each kernel with the instructions from the target of its longest branch back on."""
    for section in sections(cubin):
        if section.name.startswith(".text."):
            code = section.of(cubin)
            words = [
                int.from_bytes(code[at : at + CODE_BYTES], "little")
                for at in range(0, len(code), CODE_BYTES)
            ]
            sizes = [
                _back(word) for word in words if word & 0x1FF == _BRA and word >> 12 & 15 != _ALWAYS
            ]
            yield section.name.removeprefix(".text."), max(sizes)


def _back(branch: int) -> int:
    """Return how many instructions a branch on sm_90 goes back, itself included."""
    high = branch >> 34 & (1 << 48) - 1
    high -= (high >> 47) << 48
    return -((high << 8 | branch >> 16 & 255) * 4 // CODE_BYTES)


def main(out: Path) -> None:
    """Compile with NVIDIA's header, and write the table."""
    with TemporaryDirectory() as folder:
        program, cubin = Path(folder, "k.cu"), Path(folder, "k.cubin")
        program.write_text(source(tuple(TYPES)), encoding="utf-8")
        command = ["nvcc", "-arch=sm_90", "-cubin", str(program), "-o", str(cubin)]
        subprocess.run(command, check=True)
        rows = sorted(loops(cubin.read_bytes()))
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"V[\d.]+", version.stdout)
    lines = [f"{name},{many}" for name, many in rows]
    head = f"kernel,instructions of {release[0] if release else 'nvcc'}"
    out.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Each launch has the line of the program that called for it, where debug information tells."""

import re
import subprocess
from pathlib import Path

import pytest
from program_run import Done, cutrace

SOURCE = """\
#include <cstdio>
__global__ void put(int *x) { x[threadIdx.x] = 1; }
template <typename T> void twice(T *x)
{
    for (int i = 0; i < 2; i++)
        put<<<1, 32>>>(x);
}
int main()
{
    int *d;
    cudaMalloc(&d, 4096);
    put<<<1,
          64>>>(d);
    twice(d);
    void *arguments[] = {&d};
    cudaLaunchKernel(put, 1, 96, arguments, 0, 0);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def places(done: Done) -> list[tuple[int, str]]:
    """Each launch's threads, and where it was called."""
    assert (done.status, done.out) == (0, "cudaSuccess\n"), done.err
    return [(one.launch.threads, one.launch.called_at) for one in done.trace.launches]


@pytest.mark.parametrize(
    "options", [(), ("-O2",), ("-Xlinker", "-no-pie", "-Xcompiler", "-fno-pie")]
)
def test_a_launch_has_the_line_that_called_for_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "app.cu").write_text(SOURCE)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-o", "app", *options)
    assert built.status == 0, built.err
    found = places(cutrace(tmp_path, "record", "--", "./app"))
    first = ("app.cu:12", "app.cu:13")  # which of its lines a statement has is the compiler's
    assert found[0][1] in first
    # the last is called by a wrapper in CUDA's header
    assert found[1:] == [(32, "app.cu:6"), (32, "app.cu:6"), (96, "app.cu:16")]
    assert re.search("called at +app.cu:6", cutrace(tmp_path, "info", "app.cutrace").out)


def test_without_debug_information_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(SOURCE)
    assert cutrace(tmp_path, "nvcc", "app.cu", "-o", "app").status == 0
    subprocess.run(["strip", "app"], cwd=tmp_path, check=True)
    found = places(cutrace(tmp_path, "record", "--", "./app"))
    assert found == [(64, ""), (32, ""), (32, ""), (96, "")]


ARRAYS = """\
#include <cstdio>
struct Node { int *left, *right; };
__global__ void sum(Node *node, int *out) { *out = node->left[0] + node->right[0]; }
static int *make(int value)
{
    int *made;
    cudaMalloc(&made, 4);
    cudaMemset(made, value, 4);
    return made;
}
int main()
{
    Node host = {make(1), make(2)}, *node;
    int *out;
    cudaMalloc(&node, sizeof host);
    cudaMalloc((void **)&out, 4);
    cudaMemcpy(node, &host, sizeof host, cudaMemcpyHostToDevice);
    sum<<<1, 1>>>(node, out);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


@pytest.mark.parametrize("options", [(), ("--nvcc-flags", "-O2")])
def test_an_array_has_the_line_that_allocated_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "app.cu").write_text(ARRAYS)
    done = cutrace(tmp_path, "record", "app.cu", *options, "--")
    assert (done.status, done.out) == (0, "cudaSuccess\n"), done.err
    arrays = done.trace.launches[0].launch.arrays
    # cudaMalloc of a typed pointer is a template in CUDA's header; what no kernel is given by
    # its beginning is called by its line
    assert [(array.name, array.made_at) for array in arrays] == [
        ("app.cu:7", "app.cu:7"),
        ("app.cu:7 (2)", "app.cu:7"),
        ("node", "app.cu:15"),
        ("out", "app.cu:16"),
    ]
    said = cutrace(tmp_path, "info", "app.cutrace").out
    assert "node: 16 bytes of global memory" in said
    assert "allocated at app.cu:15" in said


def test_a_launch_by_a_library_of_headers_has_the_line_that_called_the_library(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.cu").write_text(
        "#include <cstdio>\n"
        "#include <thrust/fill.h>\n"
        "#include <thrust/device_ptr.h>\n"
        "int main()\n"
        "{\n"
        "    int *d;\n"
        "    cudaMalloc(&d, 4096);\n"
        "    thrust::fill_n(thrust::device_pointer_cast(d), 1024, 7);\n"
        "    puts(cudaGetErrorName(cudaDeviceSynchronize()));\n"
        "}\n"
    )
    done = cutrace(tmp_path, "record", "app.cu", "--")
    assert (done.status, done.out) == (0, "cudaSuccess\n"), done.err
    assert [each.launch.called_at for each in done.trace.launches] == ["app.cu:8"]

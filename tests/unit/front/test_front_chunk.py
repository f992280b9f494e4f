"""Definitions by their braces: what host code leaves when the grammar cannot follow it."""

from cutrace.tracer.front.cuda import to_ptx
from cutrace.tracer.front.source import Source
from cutrace.tracer.front.syntax.syntax import MARKERS
from cutrace.tracer.front.whole_file import chunks

TEXT = """// a note; with a semicolon {
#include <vector>
#define EACH(...) do { __VA_ARGS__; \\
    } while (0)
namespace a { namespace b {
int table[] = {1, 2};
__global__ void k(int *p) { if (p) { p[0] = '{'; } }
}}
extern "C" {
std::vector<int> run(int n) { const char *text = "}"; return {}; }
}
"""


def test_a_definition_ends_where_its_braces_do() -> None:
    found = list(chunks(TEXT, MARKERS))
    assert [(each.name, each.first, each.last, each.is_device) for each in found] == [
        ("table", 6, 6, False),
        ("k", 7, 7, True),
        ("run", 10, 10, False),
    ]
    assert [TEXT.encode()[each.end - 1 : each.end] for each in found] == [b"}", b"}", b"}"]


def test_a_host_function_is_cut_whole_where_macros_take_statements() -> None:
    text = """#define EACH(...) do { for (int d : devices) { __VA_ARGS__; } } while (0)
extern "C" {
int calculate(const std::vector<int> &devices, Buffers<float> &x) {
  EACH(
    int offset, length;
    std::tie(offset, length) = plan[d];
    if (length == 0) {
      continue;
    }
    fill<<<1, 32>>>(x[d].get());
  );
  return 0;
}
}
__global__ void fill(float *x) { x[threadIdx.x] = 1; }
"""
    compiled = to_ptx(Source("a.cu", text), "compute_75")
    assert [kernel.name for kernel in compiled.kernels] == ["fill"]

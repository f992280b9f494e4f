"""Registers, shared, local and constant bytes, spills: the assembler asked by architecture."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import cuda
from cutrace.tracer.front import resources as resources_module
from cutrace.tracer.front.resources import ARCHS, resources
from cutrace.tracer.front.signature import entries
from cutrace.tracer.front.source import Source

TEXT = """
__constant__ float table[100];
extern "C" __global__ void shared(float *a, int n)
{
    __shared__ float s[64];
    s[threadIdx.x] = table[n];
    __syncthreads();
    a[threadIdx.x] = s[n];
}
extern "C" __global__ void local(float *a, int n)
{
    float own[40];
    for (int i = 0; i < 40; i++) own[i] = a[i];
    for (int i = 0; i < n; i++) own[i % 40] += own[(i * 7) % 40];
    a[n] = own[n % 40];
}
extern "C" __global__ void tensor_only(float *a)
{
    asm volatile("{ .reg .b32 r; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r}, [%0]; }"
                 :: "r"(0));
    a[0] = 1;
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return cuda.to_ptx(Source("k.cu", TEXT), "compute_75").ptx


@pytest.mark.document("004.7", "registers, shared, local, constant bytes")
def test_every_architecture_is_measured_from_one_text(ptx: str) -> None:
    found = resources(ptx, "shared")
    assert tuple(each.arch for each in found) == ARCHS
    assert {each.shared_bytes for each in found} == {64 * 4}
    assert {each.local_bytes for each in found} == {0}
    assert all(4 <= each.registers <= 32 for each in found)


GALLERY = Path(resources_module.__file__).parents[2] / "traces" / "gallery"
OLD = ("sm_50", "sm_52", "sm_53"), ("sm_60", "sm_61", "sm_62")


@pytest.mark.parametrize("options", [(), ("-maxrregcount=24",)], ids=["free", "few"])
@pytest.mark.parametrize(
    "source", ["matrix_product/product_tiled", "local_array/local_array", "ray_caster/ray_global"]
)
def test_devices_of_5_x_and_6_x_have_the_resources_of_the_nearest_that_is_measured(
    source: str, options: tuple[str, ...]
) -> None:
    """Traces have those of 5.0 and 6.0: the assembler gives the later ones the same."""
    text = (GALLERY / f"{source}.ptx").read_text()
    for kernel in entries(text):
        for archs in OLD:
            first, *others = resources(text, kernel, archs, options)
            assert [replace(each, arch=first.arch) for each in others] == [first] * 2


def test_constant_bytes_are_all_banks(ptx: str) -> None:
    (old,) = resources(ptx, "shared", ["sm_50"])
    # bank 3: 100 floats; bank 0: 320 reserved on sm_50, a pointer and an int
    assert old.constant_bytes == 400 + 320 + 8 + 4


def test_an_array_indexed_at_run_time_takes_local_memory(ptx: str) -> None:
    for each in resources(ptx, "local", ["sm_50", "sm_75"]):
        assert each.local_bytes == 40 * 4
        assert each.spill_stores == each.spill_loads == 0


def test_an_architecture_whose_assembler_refuses_is_left_out(ptx: str) -> None:
    found = resources(ptx, "tensor_only", ["sm_60", "sm_70", "sm_75", "sm_80"])
    assert [each.arch for each in found] == ["sm_75", "sm_80"]


@pytest.mark.parametrize(
    ("statement", "barriers"),
    [
        ("", 0),
        ("__syncthreads();", 1),
        ('asm volatile("bar.sync 3, 32;");', 4),
        ('asm volatile("bar.sync %0, 32;" :: "r"(5));', 6),  # a constant in a register
        ('asm volatile("bar.sync %0, 32;" :: "r"(a[0]));', 16),
    ],
)
def test_barriers_are_those_that_the_assembler_takes(statement: str, barriers: int) -> None:
    text = f'extern "C" __global__ void k(int *a) {{ {statement} a[1] = 2; }}'
    made = cuda.to_ptx(Source("k.cu", text), "compute_90").ptx
    assert [each.barriers for each in resources(made, "k", ["sm_90"])] == [barriers]


def test_braces_of_inline_assembly_end_no_kernel() -> None:
    text = """
    extern "C" __global__ void braced(int *a)
    {
        asm("{\\n.reg .u32 t;\\nadd.u32 t, %0, 1;\\nmov.u32 %0, t;\\n}" : "+r"(a[0]));
    }
    extern "C" __global__ void after(int *a) { __shared__ int s[8]; a[0] = s[a[1]]; }
    """
    both = cuda.to_ptx(Source("k.cu", text), "compute_75").ptx
    assert both.index("\n}\n\t// end inline asm") < both.index(".entry after")
    assert [len(resources(both, name, ["sm_90"])) for name in ("braced", "after")] == [1, 1]


@pytest.mark.document("000.12", "spills by a limit of registers")
@pytest.mark.document("004.7", "maxrregcount spills")
def test_a_limit_of_registers_spills() -> None:
    sums = " ".join(f"v{i} = a[{i} * n];" for i in range(64))
    products = " ".join(f"a[{i} * n + 1] = v{i} * v{63 - i};" for i in range(64))
    names = ", ".join(f"v{i}" for i in range(64))
    text = f'extern "C" __global__ void k(float *a, int n) {{ float {names}; {sums} {products} }}'
    wide = cuda.to_ptx(Source("k.cu", text), "compute_75").ptx
    (free,) = resources(wide, "k", ["sm_75"])
    (bound,) = resources(wide, "k", ["sm_75"], ["-maxrregcount=32"])
    assert free.spill_stores == 0
    assert free.registers > 64
    assert bound.registers <= 32
    assert bound.spill_stores > 0


def test_measuring_works_in_a_background_thread(ptx: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda name: resources(ptx, name, ["sm_80"]), ["shared", "local"])
    assert one[0].shared_bytes == 256
    assert two[0].local_bytes == 160


def test_a_kernel_that_is_not_there_is_named_with_those_that_are(ptx: str) -> None:
    with pytest.raises(CutraceError, match=r"no kernel gone .* shared, local, tensor_only"):
        resources(ptx, "gone")


def test_text_for_one_architecture_alone_is_measured_for_that_one(ptx: str) -> None:
    text = ptx.replace(".target sm_75", ".target sm_90a")
    assert [each.arch for each in resources(text, "shared", ["sm_80", "sm_90", "sm_100"])] == [
        "sm_80",  # nothing in the text needs sm_90a
        "sm_90",
    ]


def test_the_assembler_is_asked_once_of_one_text(
    ptx: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    resources_module._cached.cache_clear()
    first = resources(ptx, "shared", ["sm_75", "sm_80"])
    resources_module._cached.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(resources_module, "assemble", lambda *words: pytest.fail("asked again"))
        assert resources(ptx, "shared", ["sm_75", "sm_80"]) == first
        # another kernel of the same text, fewer registers and fewer architectures are other answers
        for words in (("local", ["sm_75"]), ("shared", ["sm_75"]), ("shared", ["sm_75"], ["-O1"])):
            with pytest.raises(pytest.fail.Exception, match="asked again"):
                resources(ptx, *words)
    next((tmp_path / "cutrace" / "resources").iterdir()).write_bytes(b"broken")
    resources_module._cached.cache_clear()
    assert resources(ptx, "shared", ["sm_75", "sm_80"]) == first

"""Surfaces of a session: made, passed, bound, recorded, refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.traces.reader import LaunchTrace, read_trace
from cutrace.traces.schema import Array, Event, Space
from cutrace.traces.verify import verify

MIRROR = """
__global__ void mirror(cudaSurfaceObject_t image, int width)
{
    int x = threadIdx.x, y = blockIdx.x;
    float left, right;
    surf2Dread(&left, image, x * 4, y);
    right = surf2Dread<float>(image, (width - 1 - x) * 4, y);
    __syncthreads();
    surf2Dwrite(right - left, image, x * 4, y);
}
"""
SPILL = """
__global__ void spill(cudaSurfaceObject_t image)
{
    surf2Dwrite(1.0f, image, threadIdx.x * 4, 0, cudaBoundaryModeZero);
}
"""
REFERENCES = """
surface<void, 2> from, to;
surface<void, cudaSurfaceType1D> row;

__global__ void copy()
{
    uchar4 pixel;
    surf2Dread(&pixel, from, threadIdx.x * 4, blockIdx.x);
    pixel.w = surf1Dread<unsigned char>(row, threadIdx.x);
    surf2Dwrite(pixel, to, threadIdx.x * 4, blockIdx.x, cudaBoundaryModeZero);
}
int main() { cudaBindSurfaceToArray(from, 0); copy<<<2, 8>>>(); }
"""
BOUND = """
.version 8.0
.target sm_80
.address_size 64
.global .surfref board;
.visible .entry k()
{
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    sust.b.1d.b32.trap [board, {%r2}], %r1;
    ret;
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.cutrace"


def launch_of(path: Path) -> LaunchTrace:
    """The last launch of a trace that keeps its promises."""
    trace = read_trace(path)
    assert verify(trace) == []
    return trace.launches[-1]


def test_a_kernel_reads_and_writes_a_surface(path: Path) -> None:
    values = np.arange(15, dtype=np.float32).reshape(3, 5) ** 2
    with cutrace.Session(path) as gpu:
        image = gpu.surface(values, name="image")
        gpu.compile(MIRROR).get_function("mirror")[3, 5](image, 5)
        assert image.copy_to_host().tolist() == (values[:, ::-1] - values).tolist()
    launch = launch_of(path)
    # five floats are 20 bytes: rows of 32
    described = Array("image", Space.SURFACE, 0, 96, 4, (1, 3, 5), 32)
    assert launch.launch.arrays == (described,)
    rows = launch.accesses().to_pylist()
    assert [row["space"] for row in rows] == [Space.SURFACE] * 9
    left, right, written = (
        [each for each in row["addresses"] if each is not None] for row in rows if row["block"] == 2
    )
    assert left == [64, 68, 72, 76, 80]
    assert right == left[::-1]
    assert written == left


def test_stores_beyond_a_surface_are_dropped_and_leave_no_lanes(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        image = gpu.surface(np.zeros((2, 5), np.float32))
        gpu.compile(SPILL).get_function("spill")[1, 32](image)
        assert image.copy_to_host().tolist() == [[1] * 5, [0] * 5]
    (row,) = launch_of(path).accesses().to_pylist()
    assert [lane for lane, each in enumerate(row["addresses"]) if each is not None] == [*range(5)]


def test_a_texture_over_a_surface_shows_what_kernels_wrote(path: Path) -> None:
    source = """
    __global__ void sample(float *out, cudaTextureObject_t in)
    {
        out[threadIdx.x] = tex2D<float>(in, threadIdx.x + 1.0f, 0.5f);
    }
    """
    with cutrace.Session(path) as gpu:
        image = gpu.surface(np.zeros((1, 5), np.float32))
        texture = gpu.texture(image, filter_mode="linear")
        image.copy_to_device(np.array([[0, 2, 4, 8, 16]], np.float32))
        out = gpu.device_array(4, np.float32)
        gpu.compile(source).get_function("sample")[1, 4](out, texture)
        assert out.copy_to_host().tolist() == [1, 3, 6, 12]
    assert launch_of(path).launch.textures[0].array == ""
    assert read_trace(path).manifest.events[:2] == (
        Event("copy", 20, "HtoD", "surface0"),
        Event("copy", 20, "HtoD", "surface0"),
    )


@pytest.mark.parametrize(
    ("values", "modes"),
    [
        (np.arange(24, dtype=np.uint8).reshape(3, 4, 2), {"channels": 2}),
        (np.arange(24, dtype="<i2").view([("x", "<i2"), ("y", "<i2")]).reshape(3, 4), {}),
        (np.arange(24, dtype=">f4").reshape(2, 3, 4), {}),
        (np.arange(24, dtype=np.float16).reshape(2, 3, 4), {"layered": True}),
        (np.arange(7, dtype=np.int32), {}),
    ],
    ids=["channels", "structure", "big-endian", "layers", "row"],
)
def test_what_is_copied_to_a_surface_comes_back(path: Path, values: Any, modes: Any) -> None:
    with cutrace.Session(path) as gpu:
        surface = gpu.surface(values, **modes)
        assert surface.copy_to_host().tolist() == values.tolist()
        texels = gpu.texture(surface).description
    assert texels.layers == (2 if "layered" in modes else 0)


def test_a_reference_of_ptx_is_bound_by_name(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        module = gpu.load_ptx(BOUND)
        board = gpu.surface(np.zeros(8, np.uint32))
        module.bind_surface("board", board)
        module.get_function("k")[1, 8]()
        assert board.copy_to_host().tolist() == [*range(8)]
        with pytest.raises(CutraceError, match="no surface reference `bord`; nearest: board"):
            module.bind_surface("bord", board)
        with pytest.raises(CutraceError, match="expected a surface"):
            module.bind_surface("board", 1)  # type: ignore[arg-type]


def run_on_surface(path: Path, source: str) -> None:
    with cutrace.Session(path) as gpu:
        surface = gpu.surface(np.zeros((2, 5), np.float32), name="s")
        gpu.compile(source).get_function("k")[1, 1](surface)


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ("surf2Dwrite(1.0f, s, 20, 0)",
         r"stores to surface `s` outside at \(20, 0\) in thread \(0, 0, 0\).* to \(16, 1\)"),
        ("surf2Dwrite(1.0f, s, 2, 0)", "misaligned at surface address 0x2"),
        ("surf1Dwrite(1.0f, s, 0)", "`s` in 1 dimension; it has 2 dimensions"),
        ("surf2Dwrite(1.0f, (cudaSurfaceObject_t)0, 0, 0)", "a surface that is bound to nothing"),
        ("surf2Dwrite(1.0f, (cudaSurfaceObject_t)1, 0, 0)", "a surface that is bound to nothing"),
    ],
)  # fmt: skip
def test_a_store_that_does_not_fit_is_a_fault(path: Path, store: str, problem: str) -> None:
    source = f"__global__ void k(cudaSurfaceObject_t s)\n{{\n    {store};\n}}\n"
    with pytest.raises(KernelFault, match=rf"cu:3: .*{problem}"):
        run_on_surface(path, source)


def test_what_no_surface_is_made_of_is_refused(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        device = gpu.device_array((4, 4), np.float32, name="d")
        with pytest.raises(CutraceError, match=r"device array `d`.*surface\(array.copy_to_host"):
            gpu.surface(device)  # type: ignore[arg-type]
        with pytest.raises(CutraceError, match="surface `s` of float64"):
            gpu.surface(np.zeros((4, 4)), name="s")
        surface = gpu.surface(np.zeros((4, 4), np.float32), name="s")
        with pytest.raises(CutraceError, match=r"`s` is float32 of shape \(4, 4\), got float64"):
            surface.copy_to_device(np.zeros((4, 4)))
        kernel = gpu.compile(SPILL).get_function("spill")
        with pytest.raises(CutraceError, match=r"expected a surface.*got the texture"):
            kernel[1, 1](gpu.texture(surface))
    with cutrace.Session() as other:
        kernel = other.compile(SPILL).get_function("spill")
        with pytest.raises(CutraceError, match="`s`, is a surface of another session"):
            kernel[1, 1](surface)
        with pytest.raises(CutraceError, match="over `s`: a surface of another session"):
            other.texture(surface)


def test_surface_references_of_a_source_are_bound_by_name(path: Path) -> None:
    pixels = np.arange(2 * 8 * 4, dtype=np.uint8).reshape(2, 8, 4)
    with cutrace.Session(path) as gpu:
        module = gpu.compile(REFERENCES)
        image = gpu.surface(pixels, channels=4)
        result = gpu.surface(np.zeros_like(pixels), channels=4)
        module.bind_surface("from", image)
        module.bind_surface("row", gpu.surface(np.arange(100, 108, dtype=np.uint8)))
        module.bind_surface("to", result)
        module.get_function("copy")[2, 8]()
        found = result.copy_to_host()
        with pytest.raises(CutraceError, match="no surface reference `too`; nearest: to"):
            module.bind_surface("too", result)
    assert (found[..., :3] == pixels[..., :3]).all()
    assert found[1, :, 3].tolist() == [*range(100, 108)]
    # two loads and a store by each of two warps; the loads of the three handles are left out
    assert launch_of(path).accesses().num_rows == 2 * 3


def test_a_surface_reference_that_nobody_bound_is_a_fault_with_its_line(path: Path) -> None:
    source = "surface<void, 2> to;\n__global__ void k(cudaSurfaceObject_t)\n{\n"
    with pytest.raises(KernelFault, match=r"cu:4: .* stores to a surface .* bound to nothing"):
        run_on_surface(path, source + "    surf2Dwrite(1.0f, to, 0, 0);\n}\n")

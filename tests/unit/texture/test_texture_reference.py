"""Texture references at file scope, bound by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.texture_kernels import EARLIEST, OLD, REFERENCES, ROW, launch_of

import cutrace
from cutrace.base.errors import CutraceError, KernelFault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.cutrace"


def test_references_at_file_scope_are_bound_by_name(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        module = gpu.compile(REFERENCES)
        image = np.arange(12, dtype=np.float32).reshape(2, 6)
        colours = gpu.to_device(np.arange(24, dtype=np.uint8).reshape(6, 4))
        module.bind_texture("picture", gpu.texture(image))
        texture = gpu.texture(colours, read_mode="normalized_float", channels=4)
        module.bind_texture("colours", texture)
        module.get_global("scale").copy_to_device(np.float32(2))
        out = gpu.device_array(6, np.float32)
        module.get_function("both")[1, 6](out)
        expected = 2 * image[1] + (4 * np.arange(6) + 2).astype(np.float32) / np.float32(255)
        np.testing.assert_allclose(out.copy_to_host(), expected, rtol=1e-6)
    launch = launch_of(path)
    # the handles' loads and variables are no part of the trace; scale's are
    assert [array.name for array in launch.launch.arrays] == ["array0", "array1", "scale"]
    spaces = launch.accesses().column("space").to_pylist()
    assert spaces == [4, 1]  # const: scale; global: out


def test_ptx_of_references_binds_by_the_same_names(path: Path) -> None:
    with cutrace.Session(path.with_name("first.cutrace")) as gpu:
        ptx = gpu.compile(REFERENCES).ptx
    with cutrace.Session(path) as gpu:
        module = gpu.load_ptx(ptx)
        module.bind_texture("picture", gpu.texture(np.ones((2, 6), np.float32)))
        colours = np.full(6, 255, np.uint32).view(np.uint8).reshape(6, 4)
        module.bind_texture(
            "colours", gpu.texture(colours[:, ::-1], read_mode="normalized_float", channels=4)
        )
        out = gpu.device_array(6, np.float32)
        module.get_function("both")[1, 6](out)
        assert out.copy_to_host().tolist() == [0] * 6


@pytest.mark.parametrize("ptx", [OLD, EARLIEST], ids=["texref", "tex"])
def test_references_of_old_ptx_are_bound_by_name(path: Path, ptx: str) -> None:
    with cutrace.Session(path) as gpu:
        module = gpu.load_ptx(ptx)
        module.bind_texture("picture", gpu.texture(gpu.to_device(ROW, name="row")))
        out = gpu.device_array(32, np.float32, name="out")
        module.get_function("old")[1, 32](out)
        assert out.copy_to_host().tolist() == ROW[:32].tolist()
    launch = launch_of(path).launch
    assert [array.name for array in launch.arrays] == ["row", "out"]
    assert [texture.array for texture in launch.textures] == ["row"]


def test_a_reference_may_be_bound_anew_between_launches(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        module = gpu.load_ptx(OLD)
        out = gpu.device_array(4, np.float32)
        for first in (1.0, 2.0):
            module.bind_texture("picture", gpu.texture(np.full(4, first, np.float32)))
            module.get_function("old")[1, 4](out)
            assert out.copy_to_host().tolist() == [first] * 4


@pytest.mark.parametrize("ptx", [OLD, EARLIEST], ids=["texref", "tex"])
def test_a_reference_bound_to_nothing_is_a_fault(path: Path, ptx: str) -> None:
    problem = "`old` samples a texture that is bound to nothing"
    with pytest.raises(KernelFault, match=problem), cutrace.Session(path) as gpu:
        gpu.load_ptx(ptx).get_function("old")[1, 32](gpu.device_array(32, np.float32))


@pytest.mark.parametrize(
    ("name", "values", "modes", "message"),
    [
        ("pictur", ROW, {}, "no texture reference `pictur`; nearest: picture"),
        ("picture", ROW, {}, "`picture` is of 2 dimensions, `t` of 1 dimension"),
        ("picture", ROW.reshape(5, 8).astype("u1"), {}, "expected texels f32, `t` has u8"),
        ("colours", ROW.view("u1"), {}, "expected texels u8x4, `t` has u8"),
        ("colours", ROW.view("u1"), {"channels": 4}, "`colours`"),
    ],
)
def test_a_texture_that_does_not_fit_a_reference_is_refused(
    path: Path, name: str, values: Any, modes: dict[str, Any], message: str
) -> None:
    if modes:
        values, message = values.reshape(-1, 4), 'declared for read_mode="normalized_float"'
    with cutrace.Session(path) as gpu:
        module = gpu.compile(REFERENCES)
        texture = gpu.texture(values, name="t", **modes)
        with pytest.raises(CutraceError, match=message):
            module.bind_texture(name, texture)


def test_only_a_texture_is_bound(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        module: Any = gpu.load_ptx(OLD)
        with pytest.raises(CutraceError, match=r"made with gpu\.texture.*, got DeviceArray"):
            module.bind_texture("picture", gpu.to_device(ROW))


def test_half_floats_fit_a_reference_of_floats(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        module = gpu.compile(REFERENCES)
        module.bind_texture("picture", gpu.texture(ROW.reshape(5, 8).astype(np.float16)))

"""Textures of a session: made, passed, bound, recorded, refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.texture_kernels import FETCH, OLD, ROW, SAMPLE, launch_of

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.session.source.record import record
from cutrace.tracer.session.texture import Texture
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Argument, Event
from cutrace.traces.schema import Texture as Description


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.cutrace"


def ask_image(path: Path, image: Any, places: list[tuple[float, float]], **modes: Any) -> list[Any]:
    """Sample an image at places (x, y)."""
    x, y = np.array(places, np.float32).T
    with cutrace.Session(path) as gpu:
        out = gpu.device_array(len(x), np.float32)
        texture = gpu.texture(image, **modes)
        kernel = gpu.compile(SAMPLE).get_function("image")
        kernel[1, len(x)](out, texture, gpu.to_device(x), gpu.to_device(y))
        values: list[Any] = out.copy_to_host().tolist()
    return values


@pytest.mark.document("004.6", "(2.5, 0.5), (1.0, 1.0), (5.5, 2)")
def test_three_places_in_an_image_of_five_by_four(path: Path) -> None:
    image = np.arange(20, dtype=np.float32).reshape(4, 5)  # texel (x, y) holds 5 y + x
    places = [(2.5, 0.5), (1.0, 1.0), (5.5, 2.0)]
    # the middle of texel (2, 0); the corner of (0, 0), (1, 0), (0, 1), (1, 1), a quarter of each;
    # right of the edge, half way between (4, 1) and (4, 2)
    assert ask_image(path, image, places, filter_mode="linear") == [2, 3, 11.5]
    assert ask_image(path, image, places) == [2, 6, 14]
    repeated = [(x / 5, y / 4) for x, y in places]
    wrapped = ask_image(path, image, repeated, address_mode="wrap", normalized_coords=True)
    # 5.5 wraps to 0.5; and a fifth of a whole is a little less, in texel 0, once cut to 2**-21
    assert wrapped == [2, 5, 10]
    assert ask_image(path, image, places, address_mode="wrap") == [2, 6, 14]  # not normalised


@pytest.mark.document("003.5", "clamp and repeat of a 2 x 2 image")
def test_an_image_of_two_by_two_clamps_and_repeats(path: Path) -> None:
    image = np.array([[1, 2], [3, 4]], np.float32)
    places = [(x / 4, y / 4) for y in (1, 3) for x in (-3, -1, 1, 3, 5, 7)]
    modes: dict[str, Any] = {"normalized_coords": True}
    clamped = ask_image(path, image, places, address_mode="clamp", **modes)
    repeated = ask_image(path, image, places, address_mode="wrap", **modes)
    assert clamped == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert repeated == [1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4]


def test_the_manifest_describes_textures_in_the_order_of_their_numbers(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        data = gpu.to_device(ROW, name="data")
        gpu.texture(np.zeros((4, 5, 2), np.uint8), ("wrap", "mirror"), "linear", True,
                    "normalized_float", channels=2, name="image")  # fmt: skip
        over = gpu.texture(data)
        gpu.texture(np.zeros((3, 8), np.float16), layered=True, name="data")
        out = gpu.device_array(32, np.float32)
        gpu.compile(FETCH).get_function("fetch")[1, 32](out, over, 1)
        assert out.copy_to_host().tolist() == ROW[1:33].tolist()
    launch = launch_of(path)
    two = ("wrap", "mirror")
    assert launch.launch.textures == (
        Description("image", "u8x2", (5, 4), two, "linear", True, "normalized_float"),
        Description("texture0", "f32", (40,), ("clamp",), "point", False, "element", "data"),
        Description("data (2)", "f16", (8,), ("clamp",), "point", False, "element", "", 3),
    )
    assert launch.launch.arguments[1] == Argument("in", "cudaTextureObject_t", "texture0")
    (rows,) = launch.texel_batches()
    (row,) = rows.to_pylist()
    assert (row["texture"], row["active"]) == (1, 0xFFFFFFFF)
    assert row["corner"] == [n for lane in range(32) for n in (lane + 1, 0, 0, 0)]


def test_a_copy_is_an_event_and_linear_memory_is_none(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        gpu.texture(ROW, name="table")
        gpu.texture(gpu.device_array(8, np.float32, name="d"))
    events = read_trace(path).manifest.events
    assert events == (Event("copy", 160, "HtoD", "table"),)


def test_a_copy_stays_and_linear_memory_shows_what_was_written_since(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        host = ROW.copy()
        device = gpu.to_device(ROW)
        copied, linear = gpu.texture(host), gpu.texture(device)
        host[:] = -1
        kernel = gpu.compile(FETCH).get_function("fetch")
        out = gpu.device_array(32, np.float32)
        device.copy_to_device(ROW + 1)
        for texture, expected in ((copied, ROW), (linear, ROW + 1)):
            kernel[1, 32](out, texture, 0)
            assert out.copy_to_host().tolist() == expected[:32].tolist()


def test_rows_of_pitched_memory_are_where_they_are(path: Path) -> None:
    image = np.arange(60 * 3, dtype=np.float32).reshape(3, 60)
    with cutrace.Session(path) as gpu:
        pitched = gpu.pitched_array((3, 60), np.float32)
        pitched.copy_to_device(image)
        values = np.array([0.5, 59.5, 99], np.float32)
        x, y = gpu.to_device(values), gpu.to_device(np.array([1.5, 2.5, 0.5], np.float32))
        out = gpu.device_array(3, np.float32)
        gpu.compile(SAMPLE).get_function("image")[1, 3](out, gpu.texture(pitched), x, y)
        assert out.copy_to_host().tolist() == [image[1, 0], image[2, 59], image[0, 59]]


@pytest.mark.parametrize(
    "texels",
    [
        np.arange(8, dtype="<f4").view([("x", "<f4"), ("y", "<f4")]),
        np.arange(8, dtype="<f4").reshape(4, 2),
        np.arange(8, dtype=">f4").reshape(4, 2),
    ],
    ids=["structure", "axis", "big-endian"],
)
def test_channels_are_fields_or_a_last_axis(path: Path, texels: Any) -> None:
    source = """
    __global__ void pairs(float2 *out, cudaTextureObject_t in)
    {
        out[threadIdx.x] = tex1D<float2>(in, threadIdx.x + 0.5f);
    }
    """
    with cutrace.Session(path) as gpu:
        out = gpu.device_array((4, 2), np.float32)
        texture = gpu.texture(texels, channels=2)
        gpu.compile(source).get_function("pairs")[1, 4](out, texture)
        assert out.copy_to_host().ravel().tolist() == list(range(8))


def test_layers_of_images_and_bricks_are_sampled(path: Path) -> None:
    source = """
    __global__ void many(float *out, cudaTextureObject_t rows, cudaTextureObject_t images,
                         cudaTextureObject_t brick)
    {
        int i = threadIdx.x;
        out[3 * i] = tex1DLayered<float>(rows, 1.5f, i);
        out[3 * i + 1] = tex2DLayered<float>(images, 1.5f, 0.5f, i);
        out[3 * i + 2] = tex3D<float>(brick, 1.5f, 0.5f, i + 0.5f);
    }
    """
    brick = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    with cutrace.Session(path) as gpu:
        out = gpu.device_array(12, np.float32)
        textures = (
            gpu.texture(brick[:, 0], layered=True),
            gpu.texture(brick, layered=True),
            gpu.texture(brick),
        )
        gpu.compile(source).get_function("many")[1, 4](out, *textures)
        assert out.copy_to_host().tolist() == [n for z in range(4) for n in (6 * z + 1,) * 3]


def test_integers_come_as_they_are(path: Path) -> None:
    source = """
    __global__ void whole(int *out, cudaTextureObject_t in)
    {
        out[threadIdx.x] = tex1Dfetch<short>(in, threadIdx.x);
    }
    """
    values = np.array([-32768, -1, 0, 32767], np.int16)
    with cutrace.Session(path) as gpu:
        out = gpu.device_array(4, np.int32)
        gpu.compile(source).get_function("whole")[1, 4](out, gpu.texture(values))
        assert out.copy_to_host().tolist() == values.tolist()


def test_no_texture_is_a_fault_at_the_line_that_samples(path: Path) -> None:
    problem = r"source\.cu:4: .* bound to nothing"
    with pytest.raises(KernelFault, match=problem), cutrace.Session(path) as gpu:
        gpu.compile(FETCH).get_function("fetch")[1, 32](gpu.device_array(32, np.float32), None, 0)


def make_and_fetch(gpu: cutrace.Session, values: Any, source: str, **modes: Any) -> None:
    module = gpu.compile(source)
    out = gpu.device_array(32, np.float32)
    module.get_function(module.kernels[0])[1, 1](out, gpu.texture(values, name="t", **modes))


@pytest.mark.parametrize(
    ("call", "values", "message"),
    [
        ("tex2D<float>(t, 0, 0)", ROW, "`t` in 2 dimensions; it has 1 dimension"),
        ("tex1D<float>(t, 0)", ROW.reshape(8, 5), "`t` in 1 dimension; it has 2 dimensions"),
        ("tex1DLayered<float>(t, 0, 0)", ROW, "layers of 1 dimension; it has 1 dimension"),
        ("tex1D<float>(t, 0)", ROW.astype(np.int32), "`t` as f32; its texels are i32"),
        ("tex1D<int>(t, 0)", ROW, "`t` as s32; its texels are f32"),
    ],
)
def test_a_fetch_that_does_not_fit_its_texture_is_a_fault(
    path: Path, call: str, values: Any, message: str
) -> None:
    source = f"__global__ void k(float *out, cudaTextureObject_t t)\n{{\n    out[0] = {call};\n}}\n"
    with pytest.raises(KernelFault, match=rf"cu:3: .*{message}"), cutrace.Session(path) as gpu:
        make_and_fetch(gpu, values, source)


def test_a_coordinate_reads_no_linear_memory_of_one_dimension(path: Path) -> None:
    source = "__global__ void k(float *o, cudaTextureObject_t t) { *o = tex1D<float>(t, 1.5f); }\n"
    problem = "`t` by a coordinate; over linear memory only tex1Dfetch reads it"
    with pytest.raises(KernelFault, match=problem), cutrace.Session(path) as gpu:
        make_and_fetch(gpu, gpu.to_device(ROW), source)


@pytest.mark.parametrize(
    ("values", "modes", "message"),
    [
        (ROW, {"address_mode": "warp"}, "address_mode='warp'; nearest: wrap"),
        (ROW, {"address_mode": None}, "address_mode='None'"),
        (ROW, {"filter_mode": "liner"}, "filter_mode='liner'; nearest: linear"),
        (ROW, {"read_mode": "normal"}, "read_mode='normal'; nearest: normalized_float"),
        (ROW, {"address_mode": ("clamp", "wrap")}, "2 address modes, expected one or 1, x first"),
        (ROW, {"read_mode": "normalized_float"}, "integers of 8 and 16 bits"),
        (ROW.astype(np.int32), {"read_mode": "normalized_float"}, "integers of 8 and 16 bits"),
        (ROW.astype(np.uint8), {"filter_mode": "linear"}, "linear filtering gives no integers"),
        (ROW.astype(np.float64), {}, r"float64: expected u8.*astype\(np.float32\)"),
        (ROW.astype(np.int64), {}, r"int64: expected u8.*astype\(np.int32\)"),
        (ROW > 20, {}, r"bool: expected u8.*view\(np.uint8\)"),
        (ROW.astype(complex), {}, "complex128: expected u8"),
        (ROW.reshape(10, 4), {"channels": 3}, "3 channels: textures have 1, 2 or 4"),
        (ROW.reshape(10, 4), {"channels": 2}, "expected 2 channels as last axis"),
        (ROW.view("f4,f4"), {"channels": 4}, "4 channels: textures have 1, 2 or 4"),
        (ROW[:39].view("f4,f4,f4"), {}, "3 channels: textures have 1, 2 or 4"),
        (ROW.view("f4,i4"), {}, "a structure of 2 or 4 of one of them"),
        (np.float32(1), {}, r"shape \(\): expected one to three dimensions"),
        (ROW.reshape(2, 2, 2, 5), {}, "expected one to three dimensions"),
        (ROW[:0], {}, r"shape \(0,\): expected one to three dimensions, each of 1 or more"),
        (ROW, {"layered": True}, "expected layers of one or two dimensions"),
        (ROW.reshape(2, 2, 2, 5), {"layered": True}, "expected layers of one or two dimensions"),
        (np.zeros(131073, np.float32), {}, "131073 texels: no device has one over 131072"),
        (np.zeros((2049, 1), np.int8), {"layered": True}, "at most 2048 layers"),
    ],
)
def test_what_no_texture_is_made_of_is_refused(
    path: Path, values: Any, modes: dict[str, Any], message: str
) -> None:
    with (
        cutrace.Session(path) as gpu,
        pytest.raises(CutraceError, match=f"^texture `t`.*{message}"),
    ):
        gpu.texture(values, name="t", **modes)


@pytest.mark.parametrize(
    ("shape", "dtype", "pitched", "modes", "message"),
    [
        ((2, 4, 4), "f4", False, {}, "one or two dimensions"),
        ((2, 8), "f4", False, {"layered": True}, "without layers"),
        ((8,), "f4", False, {"filter_mode": "linear"}, "tex1Dfetch names texels by integers"),
        ((8,), "f4", False, {"normalized_coords": True}, "tex1Dfetch names texels by integers"),
        ((2, 5), "f4", False, {}, "rows are 20 bytes apart, expected a multiple of 32"),
        ((2, 8, 2), "f4", True, {"channels": 2}, "not side by side"),
        ((2, 65001), "i1", True, {}, ""),
    ],
)
def test_linear_memory_has_rules_of_its_own(
    path: Path, shape: Any, dtype: str, pitched: bool, modes: dict[str, Any], message: str
) -> None:
    with cutrace.Session(path) as gpu:
        make = gpu.pitched_array if pitched else gpu.device_array
        array = make(shape, dtype, name="d")
        if not message:
            assert repr(gpu.texture(array)) == "<texture texture0: i8, 65001 x 2, point>"
            return
        with pytest.raises(CutraceError, match=f"a texture over .*`d`.*{message}"):
            gpu.texture(array, **modes)


def test_strange_coordinates_of_a_kernel_read_something(path: Path) -> None:
    strange = [(np.nan, 0.5), (np.inf, -np.inf), (-3e38, 1.5), (1e10, np.nan)]
    image = np.array([[1, 2], [3, 4]], np.float32)
    assert ask_image(path, image, strange) == [1, 2, 3, 2]
    assert ask_image(path, image, strange, address_mode="border") == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "expected a texture, made with gpu.texture.*, or None, got int 5"),
        (ROW, "expected a texture.*got a host array"),
    ],
)
def test_only_a_texture_is_passed_for_a_texture(path: Path, value: Any, message: str) -> None:
    with cutrace.Session(path) as gpu:
        kernel = gpu.compile(FETCH).get_function("fetch")
        out = gpu.device_array(32, np.float32)
        with pytest.raises(
            CutraceError, match=f"argument 2 `in` is cudaTextureObject_t: {message}"
        ):
            kernel[1, 32](out, value, 0)
        with pytest.raises(CutraceError, match=r"expected a device array .*got the texture `t`"):
            kernel[1, 32](gpu.texture(ROW, name="t"), None, 0)


def test_a_handle_is_an_integer_that_a_structure_can_hold(path: Path) -> None:
    source = """
    struct Table { cudaTextureObject_t texture; int shift; };
    __global__ void k(float *out, Table table)
    {
        out[threadIdx.x] = tex1Dfetch<float>(table.texture, threadIdx.x + table.shift);
    }
    """
    with cutrace.Session(path) as gpu:
        table = np.zeros((), np.dtype([("texture", "u8"), ("shift", "i4")], align=True))
        table["texture"], table["shift"] = gpu.texture(ROW).handle, 2
        out = gpu.device_array(4, np.float32)
        gpu.compile(source).get_function("k")[1, 4](out, table[()])
        assert out.copy_to_host().tolist() == ROW[2:6].tolist()


def test_a_texture_of_another_session_is_refused(path: Path) -> None:
    with cutrace.Session(path.with_name("other.cutrace")) as other:
        stranger: Texture = other.texture(ROW, name="stranger")
        array = other.to_device(ROW, name="far")
    with cutrace.Session(path) as gpu:
        kernel = gpu.compile(FETCH).get_function("fetch")
        out = gpu.device_array(32, np.float32)
        with pytest.raises(CutraceError, match="`stranger`, is a texture of another session"):
            kernel[1, 32](out, stranger, 0)
        with pytest.raises(CutraceError, match="`stranger` is a texture of another session"):
            gpu.load_ptx(OLD).bind_texture("picture", stranger)
        with pytest.raises(CutraceError, match="over `far`: an array of another session"):
            gpu.texture(array)


def test_a_source_whose_kernels_all_take_textures_is_told_how_to_launch_them(path: Path) -> None:
    source = path.with_name("fetch.cu")
    source.write_text(FETCH)
    with pytest.raises(CutraceError, match="launched from a Python script, which makes them"):
        record(source, out=path)
    source.write_text(FETCH + "__global__ void plain(float *out) { *out = 1; }\n")
    with pytest.raises(CutraceError, match=r'--launch "plain<<<4, 256>>>\(out:f32\[1024\]\)"'):
        record(source, out=path)


def test_a_closed_session_makes_no_textures(path: Path) -> None:
    with cutrace.Session(path) as gpu:
        pass
    with pytest.raises(CutraceError, match="the session is closed"):
        gpu.texture(ROW)

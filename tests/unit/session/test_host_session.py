import dataclasses
import inspect
import io
import os
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.session.array import DeviceArray
from cutrace.tracer.session.record_options import RecordOptions, SessionOptions
from cutrace.tracer.session.session import Session
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Argument, Array, Event, Space

SCALE = """
__constant__ float factors[4];
__device__ int calls;

template <int N>
__global__ void __launch_bounds__(128, 2) scale(float *data, const float *by, int n)
{
    __shared__ float part[N];
    extern __shared__ int rest[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x % N] = by[0];
    rest[0] = 0;
    __syncthreads();
    if (i < n)
        data[i] *= part[0] * factors[1];
    if (i == 0)
        calls = 7;
}
"""

HELLO = '__global__ void hello() {\n    printf("Hello from %d\\n", threadIdx.x);\n}\n'

REVERSE = """__global__ void reverse(int *out, const int *in)
{
    int last = gridDim.x * blockDim.x - 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[last - i] = in[i];
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record_scale(path: Path) -> None:
    with Session(path) as gpu:
        module = gpu.compile(SCALE, name_expressions=["scale<32>"])
        data = gpu.to_device(np.arange(8, dtype=np.float32), name="data")
        by = gpu.to_device(np.full(1, 2.0, np.float32))
        module.get_global("factors").copy_to_device(np.array([0, 3], np.float32))
        module.get_function("scale<32>")[2, 64, 0, 16](data, by, np.int32(8))
        assert data.copy_to_host().tolist() == [0.0, 6.0, 12.0, 18.0, 24.0, 30.0, 36.0, 42.0]
        assert module.get_global("calls").copy_to_host(np.int32).tolist() == [7]


OPEN = """
__global__ void one(int *p) { __shared__ volatile int x; x = 1; p[0] = x; }
extern __shared__ int open[];
__global__ void none(int *p) { open[0] = 1; p[0] = open[0]; }
"""


def test_sized_shared_memory_is_a_multiple_of_the_alignment_of_the_modules_open_array(
    tmp_path: Path,
) -> None:
    with Session(tmp_path / "x.cutrace") as gpu:
        module, p = gpu.compile(OPEN), gpu.to_device(np.zeros(1, np.int32))
        module.get_function("one")[1, 1](p)
        module.get_function("none")[1, 1, 0, 4](p)
    launches = read_trace(tmp_path / "x.cutrace").manifest.launches
    # 4 bytes go up to the 16 that nvcc aligns `open` to, as ptxas -v and an H200 say; 0 stay 0
    assert [each.shared_static for each in launches] == [16, 0]


def test_the_manifest_has_the_whole_launch(here: Path) -> None:
    record_scale(here / "scale.cutrace")
    (launch,) = read_trace(here / "scale.cutrace").manifest.launches
    assert launch.signature == "scale<32>(float *data, const float *by, int n)"
    assert (launch.grid, launch.block) == ((2, 1, 1), (64, 1, 1))
    assert (launch.shared_static, launch.shared_dynamic, launch.local_bytes) == (128, 16, 0)
    assert (launch.max_threads, launch.min_blocks) == (128, 2)
    assert launch.parameter_bytes == 8 + 8 + 4
    assert launch.arguments == (
        Argument("data", "float *", "data"),
        Argument("by", "const float *", "array0"),
        Argument("n", "int", 8),
    )
    assert launch.source == "source.cu"


def test_the_manifest_has_every_array_that_the_launch_could_reach(here: Path) -> None:
    record_scale(here / "scale.cutrace")
    (launch,) = read_trace(here / "scale.cutrace").manifest.launches
    arrays = {array.name: array for array in launch.arrays}
    assert sorted(arrays) == ["array0", "calls", "data", "factors", "part", "rest"]
    assert arrays["factors"] == Array("factors", Space.CONST, 0, 16)
    assert (arrays["calls"].space, arrays["calls"].bytes) == (Space.GLOBAL, 4)
    assert (arrays["data"].bytes, arrays["data"].itemsize, arrays["data"].shape) == (32, 4, (8,))
    assert arrays["part"] == Array("part", Space.SHARED, 0, 128)
    assert arrays["rest"] == Array("rest", Space.SHARED, 128, 16)


def test_a_variable_that_shares_its_name_with_an_array_says_its_space(here: Path) -> None:
    source = """
    __constant__ int table[1];
    __global__ void k(int *out)
    {
        __shared__ int part[32];
        part[threadIdx.x] = table[0];
        __syncthreads();
        *out = part[31 - threadIdx.x];
    }
    """
    with Session("t.cutrace") as gpu:
        out = gpu.device_array(1, np.int32, name="part")
        gpu.device_array(1, np.int32, name="table")
        gpu.compile(source).get_function("k")[1, 1](out)
    (launch,) = read_trace("t.cutrace").manifest.launches
    names = [array.name for array in launch.arrays]
    assert names == ["part", "table", "table (const)", "part (shared)"]


def test_the_events_are_in_the_order_of_the_session(here: Path) -> None:
    record_scale(here / "scale.cutrace")
    assert read_trace(here / "scale.cutrace").manifest.events == (
        Event("copy", 32, "HtoD", "data"),
        Event("copy", 4, "HtoD", "array0"),
        Event("copy", 8, "HtoD", "factors"),
        Event("launch", launch=0),
        Event("copy", 32, "DtoH", "data"),
        Event("copy", 4, "DtoH", "calls"),
    )


def test_the_resources_of_each_architecture_are_there_at_the_end(here: Path) -> None:
    record_scale(here / "scale.cutrace")
    (launch,) = read_trace(here / "scale.cutrace").manifest.launches
    by_arch = {resources.arch: resources for resources in launch.resources}
    assert {"sm_50", "sm_75", "sm_90"} <= set(by_arch)
    assert by_arch["sm_75"].shared_bytes == 128
    assert by_arch["sm_75"].registers > 0


def test_two_recordings_in_different_folders_are_the_same_bytes(here: Path) -> None:
    for folder in ("one", "two"):
        (here / folder).mkdir()
        os.chdir(here / folder)
        Path("reverse.cu").write_text(REVERSE)
        with Session("t.cutrace") as gpu:
            kernel = gpu.compile("reverse.cu").get_function("reverse")
            values = np.arange(128, dtype=np.int32)
            kernel[2, 64](gpu.device_array(128, np.int32), gpu.to_device(values))
    assert contents(here / "one" / "t.cutrace") == contents(here / "two" / "t.cutrace")


def test_a_source_given_by_an_absolute_path_is_named_from_its_folder(here: Path) -> None:
    for folder in ("one", "two"):
        (here / folder).mkdir()
        source = here / folder / "reverse.cu"
        source.write_text(f'#include "empty.h"\n{REVERSE}')
        (here / folder / "empty.h").write_text("\n")
        with Session(here / folder / "t.cutrace") as gpu:
            kernel = gpu.compile(source).get_function("reverse")
            kernel[1, 32](gpu.device_array(32, np.int32), gpu.device_array(32, np.int32))
    trace = read_trace(here / "one" / "t.cutrace")
    assert trace.manifest.launches[0].source == "reverse.cu"
    assert "reverse.cu" in trace.manifest.sources
    assert set(trace.launches[0].instructions()["file"].to_pylist()) == {"reverse.cu"}
    assert contents(here / "one" / "t.cutrace") == contents(here / "two" / "t.cutrace")


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def reverse(gpu: Session, values: DeviceArray, blocks: int = 1) -> None:
    out = gpu.device_array(32 * blocks, np.int32, name="out")
    gpu.compile(REVERSE).get_function("reverse")[blocks, 32](out, values)


def launch_and_raise(problem: BaseException) -> None:
    with Session("t.cutrace") as gpu:
        reverse(gpu, gpu.device_array(32, np.int32))
        raise problem


def test_an_exception_inside_leaves_no_trace(here: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"):
        launch_and_raise(RuntimeError("mine"))
    assert list(here.iterdir()) == []


def test_ctrl_c_inside_leaves_no_trace(here: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        launch_and_raise(KeyboardInterrupt())
    assert list(here.iterdir()) == []


def test_a_fault_of_the_kernel_leaves_no_trace(here: Path) -> None:
    with pytest.raises(KernelFault) as raised, Session("t.cutrace") as gpu:
        reverse(gpu, gpu.to_device(np.zeros(32, np.int32), name="short"), blocks=2)
    assert "source.cu:5: kernel `reverse` reads 4 bytes outside" in str(raised.value)
    assert list(here.iterdir()) == []


def test_an_existing_trace_is_replaced_and_anything_else_refused(here: Path) -> None:
    for _ in range(2):
        with Session("t.cutrace"):
            pass
    Path("notes.txt").write_text("mine")
    with pytest.raises(CutraceError, match=r"notes\.txt"), Session("notes.txt"):
        pass
    assert Path("notes.txt").read_text() == "mine"


def test_without_a_path_the_trace_is_a_temporary_one(here: Path) -> None:
    with Session() as gpu:
        gpu.to_device([1, 2, 3])
    assert gpu.trace.name.endswith(".cutrace")
    assert len(read_trace(gpu.trace).manifest.events) == 1
    assert list(here.iterdir()) == []


def test_what_must_happen_at_the_end_is_handed_in(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Path, bool]] = []
    monkeypatch.setattr(Session, "at_close", [lambda path: seen.append((path, path.is_dir()))])
    with Session("t.cutrace"):
        assert seen == []
    assert seen == [(here / "t.cutrace", True)]


def test_nothing_happens_at_the_end_of_a_session_that_failed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(Session, "at_close", [seen.append])
    with pytest.raises(RuntimeError), Session("t.cutrace"):
        raise RuntimeError
    assert seen == []


def test_a_session_is_used_inside_its_with_block(here: Path) -> None:
    gpu = Session("t.cutrace")
    with pytest.raises(CutraceError, match="open the session first"):
        gpu.to_device([1])
    with gpu:
        array = gpu.to_device([1])
    with pytest.raises(CutraceError, match="the session is closed"):
        array.copy_to_host()
    with pytest.raises(CutraceError, match="the session is closed"):
        gpu.compile(HELLO)
    with pytest.raises(CutraceError, match="a session is opened once"), gpu:
        pass


def test_what_the_kernel_prints_goes_to_the_output(here: Path) -> None:
    output = io.StringIO()
    with Session("t.cutrace", output=output) as gpu:
        gpu.compile(HELLO).get_function("hello")[1, 10]()
    assert output.getvalue() == "".join(f"Hello from {i}\n" for i in range(10))


def test_what_the_kernel_prints_goes_to_standard_output(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session("t.cutrace") as gpu:
        gpu.compile(HELLO).get_function("hello")[1, 1]()
    assert capsys.readouterr().out == "Hello from 0\n"


def test_a_mistyped_path_names_the_nearest_files(here: Path) -> None:
    for name in ("reverse.cu", "reverse_shared.cu", "transpose.cu", "notes.md"):
        Path(name).write_text("\n")
    with (
        pytest.raises(CutraceError, match=r"^revers\.cu: .*nearest: reverse\.cu, reverse_shared"),
        Session("t.cutrace") as gpu,
    ):
        gpu.compile("revers.cu")


def test_a_source_is_a_path_or_text(here: Path) -> None:
    with Session() as gpu, pytest.raises(CutraceError, match="text of a source, got int 12"):
        gpu.compile(12)  # type: ignore[arg-type]


def test_code_in_one_line_is_text(here: Path) -> None:
    line = "__global__ void one(float *out) { *out = 1; }"
    with Session() as gpu:
        out = gpu.device_array(1, np.float32)
        gpu.compile(line).get_function("one")[1, 1](out)
        assert out.copy_to_host().tolist() == [1]
    with Session() as gpu, pytest.raises(CutraceError, match=r"one\.cu: there is no such file"):
        gpu.compile("one.cu")


def test_a_relative_trace_is_meant_from_where_the_session_began(here: Path) -> None:
    Path("elsewhere").mkdir()
    with Session("t.cutrace") as gpu:
        os.chdir("elsewhere")
        gpu.to_device(np.zeros(4))
    assert gpu.trace == here / "t.cutrace"
    assert len(read_trace(gpu.trace).manifest.events) == 1
    assert not os.listdir("."), "nothing lies where the session ended"
    assert sorted(os.listdir(here)) == ["elsewhere", "t.cutrace"]


def test_a_missing_folder_is_said(here: Path) -> None:
    with (
        pytest.raises(CutraceError, match=r"there is no folder nowhere"),
        Session("t.cutrace") as gpu,
    ):
        gpu.compile(Path("nowhere") / "a.cu")


def test_an_array_of_another_session_is_refused(here: Path) -> None:
    with Session() as other:
        stranger = other.to_device(np.zeros(32, np.int32), name="stranger")
    with (
        pytest.raises(CutraceError, match="argument 2, `stranger`, is an array of another"),
        Session("t.cutrace") as gpu,
    ):
        reverse(gpu, stranger)


def test_two_texts_without_a_name_are_kept_apart(here: Path) -> None:
    with Session("t.cutrace", output=io.StringIO()) as gpu:
        gpu.compile(HELLO).get_function("hello")[1, 1]()
        kernel = gpu.compile(REVERSE).get_function("reverse")
        kernel[1, 1](gpu.device_array(1, np.int32), gpu.device_array(1, np.int32))
    trace = read_trace("t.cutrace")
    first, second = (launch.launch.source for launch in trace.launches)
    assert (trace.manifest.sources[first], trace.manifest.sources[second]) == (HELLO, REVERSE)
    assert set(trace.launches[1].instructions()["file"].to_pylist()) == {second}


def test_every_option_of_a_recording_is_a_keyword_of_a_session() -> None:
    internal = "ran", "final_values", "inputs"  # the verbs' own
    fields = {f.name: f.type for f in dataclasses.fields(RecordOptions) if f.name not in internal}
    own = {name: kind for name, kind in fields.items() if not name.startswith("only_")}
    typed = get_type_hints(SessionOptions)
    assert typed.keys() == {*own, "only"}
    for name, kind in own.items():
        assert {*(get_args(kind) or (kind,)), type(None)} <= {*get_args(typed[name])}, name
    shown = inspect.signature(Session).parameters
    assert list(shown) == ["path", "output", *typed]
    assert all(shown[name].default is None for name in typed)


def test_a_keyword_that_no_option_has_is_refused() -> None:
    for name in ("engines", "only_blocks", "ran"):
        with pytest.raises(TypeError, match=rf"__init__\(\) got an unexpected .* '{name}'"):
            Session("t.cutrace", **{name: None})

"""Kernels as Numba compiles them: an array is one argument, and many parameters of PTX."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.module import Module
from cutrace.tracer.session.session import Session
from cutrace.tracer.session.source.suggestion import example_line
from cutrace.traces.reader import read_trace

ARRAY = "5ArrayI{}Li{}E1C7mutable7alignedE"
NAME = "_ZN3app6gatherB2v1B3cw5E{}"
MEMBERS = ("meminfo", "parent", "nitems", "itemsize", "data")


def members(array: str, dimensions: int) -> list[str]:
    """What an array is in PTX: ArrayModel of numba/core/datamodel/models.py."""
    sizes = [f"{part}{axis}" for part in ("shape", "stride") for axis in range(dimensions)]
    return [f"{array}_{member}" for member in (*MEMBERS, *sizes)]


def written(kernel: str, parameters: list[str], body: str) -> str:
    """PTX with parameters of 64 bits that are called so."""
    declared = ",\n".join(f".param .u64 {name}" for name in parameters)
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        f".visible .entry {kernel}(\n{declared}\n)\n{{\n.reg .b64 %rd<9>;\n{body}ret;\n}}\n"
    )


KERNEL = NAME.format(ARRAY.format("x", 1) + ARRAY.format("f", 2) + "x")
OUT, IN = members("out", 1), members("in", 2)
ASKED = [IN[2], IN[3], *IN[5:], OUT[2], "last"]
PTX = written(
    KERNEL,
    [*OUT, *IN, "last"],
    "ld.param.u64 %rd1, [out_data];\n"
    + "".join(
        f"ld.param.u64 %rd2, [{name}];\nst.global.u64 [%rd1+{8 * at}], %rd2;\n"
        for at, name in enumerate(ASKED)
    ),
)


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(tmp_path_factory.mktemp("numba") / "t.cutrace") as session:
        yield session


@pytest.fixture(scope="module")
def module(gpu: Session) -> Module:
    return gpu.load_ptx(PTX)


def test_a_kernel_is_called_by_its_own_name_and_its_arguments_types(module: Module) -> None:
    assert str(module.get_function("gather").signature) == (
        "gather(Array<long long, 1, C, mutable, aligned>, Array<float, 2, C, mutable, aligned>, "
        "long long)"
    )


def test_an_array_is_handed_over_with_sizes_and_strides(gpu: Session, module: Module) -> None:
    out = gpu.device_array(8, np.int64)
    rows = gpu.device_array((3, 5), np.float32)
    module.get_function("gather")[1, 1](out, rows, -7)
    # 15 elements of 4 bytes; 3 by 5, a row of 5 takes 20 bytes
    assert out.copy_to_host().tolist() == [15, 4, 3, 5, 20, 4, 8, -7]


def test_rows_of_a_pitched_array_are_as_far_apart_as_they_are(gpu: Session, module: Module) -> None:
    out = gpu.device_array(8, np.int64)
    module.get_function("gather")[1, 1](out, gpu.pitched_array((3, 5), np.float32), 0)
    # rows start at multiples of 256 bytes
    assert out.copy_to_host().tolist()[4:6] == [256, 4]


def test_an_array_that_does_not_fit_is_told(gpu: Session, module: Module) -> None:
    gather = module.get_function("gather")[1, 1]
    out = gpu.device_array(8, np.int64)
    line = gpu.device_array(4, np.float32, name="line")
    whole = gpu.device_array((3, 5), np.int32, name="whole")
    for given, told in (
        (line, "expected an array of 2 dimensions, got `line` of 1"),
        (None, "expected an array of 2 dimensions, got None"),
        (whole, "is float *: got `whole` of int32"),
    ):
        with pytest.raises(CutraceError) as raised:
            gather(out, given, 0)
        assert told in str(raised.value)


def test_the_example_has_an_array_where_numba_takes_one(module: Module) -> None:
    (signature,) = module.signatures
    assert example_line(signature, PTX) == "gather<<<4, 256>>>(p1:i64[1024], p2:f32[64,64], 1024)"
    flat = PTX.replace("{\n", "{\n.reg .b32 %r<2>;\nmov.u32 %r1, %tid.y;\n", 1)
    assert example_line(signature, flat).startswith("gather<<<(4, 4), (16, 16)>>>(p1:i64[64], ")


def test_a_name_with_tags_that_promises_more_than_ptx_has_is_taken_as_declared(
    gpu: Session,
) -> None:
    ptx = written(KERNEL, ["a", "b"], "")
    function = gpu.load_ptx(ptx).get_function("gather")
    assert [each.name for each in function.signature.parameters] == ["p1", "p2"]


def test_ptx_brings_the_text_that_it_was_compiled_from(tmp_path: Path) -> None:
    program = tmp_path / "app" / "kernels.py"
    program.parent.mkdir()
    program.write_text("def nothing():\n    return\n")
    text = written("nothing", [], ".loc 1 2 4\n")
    named = f'{text}.file 1 "{program.as_posix()}"\n.file 2 "{tmp_path.as_posix()}/gone.py"\n'
    with Session(tmp_path / "t.cutrace") as gpu:
        gpu.load_ptx(named).get_function("nothing")[1, 1]()
    trace = read_trace(tmp_path / "t.cutrace")
    assert set(trace.manifest.sources) == {"source.ptx", "kernels.py"}
    table = trace.launches[0].instructions()
    assert table["file"].to_pylist() == ["kernels.py"]
    assert table["line"].to_pylist() == [2]


def test_a_file_that_is_not_here_is_named_without_its_folders(tmp_path: Path) -> None:
    named = written("nothing", [], ".loc 1 2 4\n") + f'.file 1 "{tmp_path.as_posix()}/gone.py"\n'
    with Session(tmp_path / "t.cutrace") as gpu:
        gpu.load_ptx(named).get_function("nothing")[1, 1]()
    table = read_trace(tmp_path / "t.cutrace").launches[0].instructions()
    assert table["file"].to_pylist() == ["gone.py"]

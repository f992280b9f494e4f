from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.session.module import Module
from cutrace.tracer.session.session import Session
from cutrace.tracer.session.symbol import plain_name
from cutrace.tracer.simt.decode.load_module import add_bank, load_module
from cutrace.tracer.simt.memory.memory import Memory

SOURCE = """
namespace tables { __device__ int squares[4]; }
__constant__ float coefficients[8];

__global__ void fill(int *out) { out[threadIdx.x] = tables::squares[0] + (int)coefficients[0]; }
__global__ void copy(int *out) { out[0] = 1; }
__global__ void copy(float *out) { out[0] = 1; }
template <class T, int N> __global__ void scale(T *out) { out[0] *= N; }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Module]:
    with Session(tmp_path_factory.mktemp("module") / "t.cutrace") as gpu:
        yield gpu.compile(SOURCE, name_expressions=["scale<float, 4>"])


def test_a_module_lists_its_kernels(module: Module) -> None:
    assert sorted(module.kernels) == ["copy", "copy", "fill", "scale<float, 4>"]


@pytest.mark.parametrize("name", ["fill", "_Z4fillPi"])
def test_a_kernel_is_found_by_its_plain_and_its_ptx_name(module: Module, name: str) -> None:
    assert str(module.get_function(name).signature) == "fill(int *out)"


@pytest.mark.parametrize("name", ["scale<float, 4>", "scale<float,4>"])
def test_a_template_is_found_by_its_arguments(module: Module, name: str) -> None:
    assert module.get_function(name).name == "scale<float, 4>"


def test_a_name_of_two_kernels_asks_for_the_ptx_name(module: Module) -> None:
    with pytest.raises(CutraceError) as raised:
        module.get_function("copy")
    assert "has several `copy`, say one's PTX name:" in str(raised.value)
    assert "_Z4copyPi  copy(int *out)" in str(raised.value)
    assert module.get_function("_Z4copyPf").signature.parameters[0].c_type == "float *"


def test_a_kernel_that_is_not_there_lists_those_that_are(module: Module) -> None:
    with pytest.raises(CutraceError) as raised:
        module.get_function("fil")
    lines = str(raised.value).split("\n")
    assert lines[0] == "source.cu has no kernel `fil`; nearest: fill; its kernels:"
    assert "  fill(int *out)" in lines
    assert "  scale<float, 4>(float *out)" in lines


def test_a_variable_is_found_by_its_name_in_c_and_in_ptx(module: Module) -> None:
    for name in ("tables::squares", "_ZN6tables7squaresE"):
        assert module.get_global(name).nbytes == 16


def test_a_variable_that_is_not_there_lists_those_that_are(module: Module) -> None:
    with pytest.raises(CutraceError, match=r"`coeficients`; nearest: coefficients; it has "):
        module.get_global("coeficients")


def test_a_variable_takes_what_fits_into_it(module: Module) -> None:
    symbol = module.get_global("coefficients")
    symbol.copy_to_device(np.array([1, 2], np.float32))
    assert symbol.copy_to_host(np.float32).tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    with pytest.raises(CutraceError, match="`coefficients` has 32 bytes, got 36 to copy"):
        symbol.copy_to_device(np.zeros(9, np.float32))


def test_a_launch_needs_a_configuration(module: Module) -> None:
    kernel = module.get_function("fill")
    with pytest.raises(CutraceError, match=r"a launch is written fill\[grid, block\]"):
        kernel(None)
    with pytest.raises(CutraceError, match=r"fill\[\.\.\.\]: expected \[grid, block\]"):
        kernel[(1,)]
    with pytest.raises(CutraceError, match=r"block\.x is 0"):
        kernel[1, 0]


def test_module_and_kernels_may_come_from_ptx(tmp_path: Path, module: Module) -> None:
    path = tmp_path / "a.ptx"
    path.write_text(module.ptx)
    with Session(tmp_path / "t.cutrace") as gpu:
        loaded = gpu.load_ptx(path)
        assert str(loaded.get_function("fill").signature) == "fill(int *)"


@pytest.mark.parametrize(
    ("ptx_name", "name"),
    [
        ("table", "table"),
        ("_ZN2ns5tableE", "ns::table"),
        ("_ZZ4tilePfE4part", "part"),
        ("_ZZ1zPiE1a_0", "a"),
        ("_ZZN2ns1kIfLi16EEEvPT_PKS1_S1_E1s", "s"),
        ("$str$1", "$str$1"),
    ],
)
def test_variables_are_called_as_in_c(ptx_name: str, name: str) -> None:
    assert plain_name(ptx_name) == name


def test_the_bank_of_a_cubins_parameters_has_their_gaps_too() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 a, .param .offset 640 .u64 b) {{ .reg .b64 %p; {} ret; }}
"""
    memory = Memory()
    loaded = load_module(memory, parse_module(text.format("")))
    kernel = link_kernel(parse_module(text.format("cvta.param.u64 %p, b;")), "k")
    place = add_bank(memory, loaded, kernel, 0x218).parameters
    assert place is not None
    assert (place.address % 16, place.size) == (8, 640 + 8)

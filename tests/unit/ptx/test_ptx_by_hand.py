"""PTX as people and old compilers write it: forms that today's compilers do not print."""

from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError

REGISTERS = ".reg .u64 from, to; .reg .u32 r<9>; .reg .b64 d<9>; .reg .pred p;"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def run(body: str, outside: str = "", given: Any = (12, 34), head: str = HEAD) -> list[int]:
    """What four words hold after `body`, which finds `from` and `to` loaded."""
    text = f"""{head}{outside}
.visible .entry k(.param .u64 input, .param .u64 output)
{{
{REGISTERS}
ld.param.u64 from, [input];
ld.param.u64 to, [output];
{body}
}}
"""
    with cutrace.Session() as gpu:
        source, result = gpu.to_device(np.array(given, np.uint32)), gpu.device_array(4, np.uint32)
        gpu.load_ptx(text).get_function("k")[1, 1](source, result)
        words: list[int] = result.copy_to_host().tolist()
    return words


@pytest.mark.parametrize(
    "declared", [".local .align 8 .b8 x[8];", ".shared .u32 x[2];", ".global .u32 x[2];"]
)
def test_a_variable_by_name_is_reached_in_its_own_space(declared: str) -> None:
    body = f"{declared} ld.u32 r1, [from]; st.u32 [x+4], r1; ld.u32 r2, [x+4]; st.u32 [to], r2;"
    assert run(body)[0] == 12


def test_a_number_is_added_to_a_register() -> None:
    assert run("ld.u32 r1, [from]; add.u32 r2, r1+1, r1 + -2; st.u32 [to], r2+5;")[0] == 13 + 10 + 5


def test_an_array_has_elements() -> None:
    outside = ".const .align 8 .b16 table[4] = { 10, 20, 30, 40 };\n.global .u32 kept[3];"
    body = """ld.const.u16 r1, table[2]; st.global.u32 kept[1], r1;
    mov.u64 d1, kept[1]; ld.global.u32 r2, [d1]; st.u32 [to], r2;"""
    assert run(body, outside)[0] == 30


def test_variables_of_a_function_may_lie_in_global_memory() -> None:
    body = """{ .global .b32 table[4] = {1, 2, 3, 4}; ld.global.u32 r1, [table+8]; }
    { .global .b32 table[2] = {7, 8}; ld.global.u32 r2, [table+4]; }
    st.u32 [to], r1; st.u32 [to+4], r2;"""
    assert run(body)[:2] == [3, 8]


def test_special_registers_of_three_axes_move_together() -> None:
    body = ".reg .v4 .u32 v; mov.v4.u32 v, %ntid; st.v4.u32 [to], v;"
    assert run(body) == [1, 1, 1, 0]
    with pytest.raises(CutraceError, match="as long as all parts"):
        run("mov.u32 r1, %ntid;")


@pytest.mark.parametrize("head", [
    ".version 1.4\n.target sm_10\n", ".version 6.5\n.target sm_30\n.address_size 32\n",
])  # fmt: skip
def test_addresses_may_have_32_bits(head: str) -> None:
    text = f"""{head}
.global .u32 one = 1;
.entry k(.param .u32 input, .param .u32 output)
{{
.shared .u32 s[4];
.reg .u32 from, to, at, a, b;
ld.param.u32 from, [input];
ld.param.u32 to, [output];
ld.global.u32 a, [from+4];
mov.u32 at, one;
ld.global.u32 b, [at];
add.u32 a, a, b;
mov.u32 at, s;
st.shared.u32 [at+8], a;
ld.shared.u32 a, [s+8];
atom.global.add.u32 b, [to], a;
ret;
}}
"""
    with cutrace.Session() as gpu:
        source = gpu.to_device(np.array([5, 6], np.uint32))
        result = gpu.to_device(np.array([100], np.uint32))
        gpu.load_ptx(text).get_function("k")[1, 1](source, result)
        assert result.copy_to_host().tolist() == [107]


def test_wide_vectors_of_loads_and_moves() -> None:
    body = """.reg .u16 t<8>;
    ld.global.v8.u8 {t0, t1, t2, t3, t4, t5, t6, t7}, [from];
    mov.v8.u16 {t0, t1, t2, t3, t4, t5, t6, t7}, {t7, t6, t5, t4, t3, t2, t1, t0};
    st.global.v8.u8 [to], {t0, t1, t2, t3, t4, t5, t6, t7};"""
    assert run(body, given=(0x04030201, 0x08070605))[:2] == [0x05060708, 0x01020304]

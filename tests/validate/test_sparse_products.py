"""`mma.sp` leaves what an NVIDIA H200 left, bit for bit: every shape, type and selector.

`sparse_products.npz` has of each form the registers of A, B, C, the metadata and D there (17, 32):
random integers, and floats of exponents that differ by at most 2.
"""

from pathlib import Path

import numpy as np
import pytest
from ptx.ptx_run import HEADER, run_kernel, same_under_both

CHIP = np.load(Path(__file__).parent / "sparse_products.npz")
FORMS = dict(zip(map(str, CHIP["forms"]), CHIP["registers"], strict=True))


def text_of(form: str) -> tuple[str, int]:
    """A kernel of one product of what lies at its first address, and how many registers D has."""
    mnemonic, _, selector = form.partition(" ")
    bits = {"tf32": 32, "f16": 16, "bf16": 16, "u4": 4, "s4": 4}.get(mnemonic.split(".")[-2], 8)
    columns = int(mnemonic.partition("n8k")[2].partition(".")[0])
    factor = columns * bits // 128  # registers of A, and of B
    sum_ = 2 if mnemonic.endswith(".f16") else 4
    places = [*range(factor), *range(4, 4 + factor), *range(8, 8 + sum_), 12]
    loads = "".join(f"ld.global.b32 %a{k}, [%p+{128 * k}];" for k in places)

    def registers(name: str, first: int, count: int) -> str:
        return "{" + ", ".join(f"%{name}{first + k}" for k in range(count)) + "}"

    operands = [registers("d", 0, sum_), registers("a", 0, factor), registers("a", 4, factor)]
    product = f"{mnemonic} {', '.join(operands)}, {registers('a', 8, sum_)}, %a12, {selector};"
    stores = "".join(f"st.global.b32 [%q+{128 * k}], %d{k};" for k in range(sum_))
    return (
        f"{HEADER}.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n"
        ".reg .b64 %p; .reg .b64 %q; .reg .b64 %o; .reg .b32 %a<13>; .reg .b32 %d<4>;\n"
        ".reg .b32 %t; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;\n"
        "ld.param.u64 %p, [a]; ld.param.u64 %q, [b]; add.u64 %p, %p, %o; add.u64 %q, %q, %o;\n"
        f"{loads}\n{product}\n{stores}\nret;\n}}\n"
    ), sum_


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", ["sp::ordered_metadata", "sp"])
def test_a_product_with_a_sparse_factor_is_the_chips(form: str, spelling: str) -> None:
    text, count = text_of(form.replace("sp::ordered_metadata", spelling))
    chip = FORMS[form]
    arrays = [chip[:13].ravel(), np.zeros(128, np.uint32)]
    _, found = same_under_both(lambda rows: run_kernel(text, "k", 32, arrays, sink=rows))
    assert np.count_nonzero(chip[13 : 13 + count]) > 16 * count
    assert (found.reshape(4, 32)[:count] == chip[13 : 13 + count]).all()


def test_every_form_is_there() -> None:
    kinds = {form.partition(" ")[0] for form in FORMS}
    # 2 shapes of f16 into f16 and f32, bf16, tf32; 2 of 4 pairs of bytes, and of 4-bit integers,
    # wrapped and clamped; 4 pairs of 8-bit floats
    assert len(kinds) == 2 * 4 + 2 * 2 * 4 * 2 + 4

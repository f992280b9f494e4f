"""Tensor memory in machine code of 10.0 has what the PTX engine leaves there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tensor_memory import (
    COLUMNS,
    IMAGE,
    TEXT,
    arrivals_at_the_first,
    instruction_descriptor,
    of_chunks,
    text_of,
)

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.front.toolkit import find_file
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify

pytestmark = pytest.mark.skipif(
    find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is not installed"
)
RNG = np.random.default_rng(11)
MMA = "tcgen05.mma.cta_group::1.kind::"
WS = "tcgen05.mma.ws.cta_group::1.kind::"
SPARSE = "tcgen05.mma.sp.cta_group::1.kind::"
KINDS = [
    f"{MMA}f16 [%ta], %da, %db, %w0, {{%w4, %w5, %w6, %w7}}, %yes, 3;",
    f"{MMA}tf32 [%ta+16], %da, %db, %w1, %no;",
    f"{MMA}i8 [%ta+32], %da, %db, %w2, %yes;",
    f"{MMA}f8f6f4.collector::a::fill [%ta+48], %da, %db, %w3, %yes;",
]
FORMS = [
    f"{MMA}f16.ashift.collector::a::lastuse [%ta], [%ta+48], %db, %w0, %yes;",
    f"{SPARSE}f16 [%ta+16], %da, %db, [%ta+56], %w1, %yes;",
    f"{SPARSE}i8 [%ta+32], [%ta+48], %db, [%ta+56], %w2, %no;",
    f"{WS}f16.collector::b1::fill [%ta+32], %da, %db, %w3, %yes;",
]
SCALES = [
    f"{MMA}mxf8f6f4.block_scale.scale_vec::1X [%ta], %da, %db, %w0, [%ta+48], [%ta+56], %no;",
    f"{MMA}mxf4.block_scale.scale_vec::2X [%ta+16], %da, %db, %w1, [%ta+48], [%ta+56], %no;",
    f"{MMA}mxf4nvf4.block_scale.scale_vec::4X [%ta+32], %da, %db, %w2, [%ta+48], [%ta+56], %yes;",
]
COPIES = [
    "tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%ta+8], %da;",
    "tcgen05.cp.cta_group::1.128x128b [%ta+16], %da;",
    "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13.b8x16.b6x16_p32 [%ta+24], %db;",
    "tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%ta+32], %db;",
    "tcgen05.cp.cta_group::1.32x128b.warpx4 [%ta+40], %da;",
    "tcgen05.cp.cta_group::1.4x256b [%ta+48], %db; tcgen05.shift.cta_group::1.down [%ta+8];",
]


def moves() -> str:
    """Loads of all shapes, each stored eight columns on, by all warps."""
    lines = ["add.u32 %r6, %tw, 1048576;"]
    shapes = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
    for number, (shape, words) in enumerate(shapes.items()):
        registers = f"{{{', '.join(f'%v{k}' for k in range(2 * words))}}}"
        at = "%tw" if shape == "32x32b" else "%r6"
        apart = ", 20" if shape == "16x32bx2" else ""
        form = f"sync.aligned.{shape}.x2"
        lines.append(f"tcgen05.ld.{form}.b32 {registers}, [{at}+{number}]{apart};")
        lines.append(f"tcgen05.st.{form}.b32 [{at}+{8 * number + 8}]{apart}, {registers};")
    lines.append(f"tcgen05.ld.{form}.pack::16b.b32 {registers}, [%tw], 20;")
    lines.append(f"tcgen05.st.{form}.unpack::16b.b32 [%tw+3], 20, {registers};")
    return " ".join(lines)


def left(
    text: str, arrays: list[NDArray[Any]], code: str, engine: str, trace: Path | None = None,
    blocks: int = 1,
) -> list[int]:  # fmt: skip
    """Tensor memory after a kernel."""
    with cutrace.Session(trace, code=code, engine=engine) as gpu:
        places = [gpu.to_device(array) for array in arrays]
        gpu.load_ptx(text).get_function("k")[blocks, 128](*places)
        values: list[int] = places[-1].copy_to_host().tolist()
    return values


def words_of(name: str) -> list[int]:
    """Instruction descriptors of 128 x 16, and which lanes to leave alone."""
    dense = [instruction_descriptor(128, 16, *types) for types in
             ((1, 0, 1), (1, 2, 2), (2, 1, 0), (1, 5, 0))]  # fmt: skip
    if name == "kinds":
        return [*dense, 1, 0, 0xF0, 1 << 31]
    if name == "forms":
        return [dense[0], dense[0] | 4, dense[2] | 4, instruction_descriptor(32, 64, 1, 0, 0)]
    scaled = 16 // 8 << 17 | 8 << 24
    return [scaled | 1 << 23, scaled | 1 << 7 | 1 << 10 | 1 << 23, scaled | 1 << 7 | 1 << 10]


@pytest.mark.parametrize("name", ["kinds", "forms", "scales", "copies", "moves"])
def test_tensor_memory_has_the_same(name: str, tmp_path: Path) -> None:
    forms = {"kinds": KINDS, "forms": FORMS, "scales": SCALES, "copies": COPIES, "moves": []}[name]
    text = text_of(" ".join(forms).rstrip(";") or "mov.u32 %r2, 0")
    if name == "moves":
        text = text.replace("@%c1 bra ISSUED;\n", f"{moves()} @%c1 bra ISSUED;\n")
    words = words_of(name)
    arrays: list[NDArray[Any]] = [
        RNG.integers(0, 1 << 32, IMAGE // 4, dtype=np.uint32),
        np.array([of_chunks(0, 128), of_chunks(8192, 64)], np.uint64),
        np.array([*words, *[0] * (8 - len(words))], np.uint32),
        RNG.integers(0, 1 << 32, 128 * COLUMNS, dtype=np.uint32),
        np.zeros(128 * COLUMNS, np.uint32),
    ]
    wanted = left(text, arrays, "ptx", "array")
    trace = tmp_path / "machine.cutrace"
    assert left(text, arrays, "sm_100", "array", trace) == wanted
    assert wanted != arrays[3].tolist()
    assert left(text, arrays, "sm_100", "compiled") == wanted
    verify(read_trace(trace))


PAIR = """setp.ne.u32 %c3, %r9, 0; @%c3 bra ISSUED;
tcgen05.mma.cta_group::2.kind::f16 [%ta], %da, %db, %w0, %yes;
tcgen05.cp.cta_group::2.128x128b [%ta+40], %da; tcgen05.shift.cta_group::2.down [%ta+32];
mov.b16 %h0, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster
.multicast::cluster.b64 [gate], %h0;"""


@pytest.mark.parametrize("version", ["8.8", "9.1"])  # ptxas 13 keeps the mbarrier elsewhere
def test_pairs_of_blocks_allocate_twice_and_share_a_product(version: str, tmp_path: Path) -> None:
    text = TEXT.replace("BODY", PAIR).replace("GROUP", "2").replace("8.8", version, 1)
    text = text.replace("CLUSTER", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;")
    text = text.replace(")\n{", ") .explicitcluster .reqnctapercluster 2\n{", 1)
    first = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], "
    last = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 "
    assert first in text
    assert last in text
    text = text.replace(first, f"{first}32; ld.shared.u32 %r15, [slot];\n{first}", 1)
    text = text.replace(last, f"{last}%r15, 32;\n{last}")
    arrays: list[NDArray[Any]] = [
        RNG.integers(0, 1 << 32, 2 * IMAGE // 4, dtype=np.uint32),
        np.array([of_chunks(0, 128), of_chunks(8192, 16)], np.uint64),
        np.array([instruction_descriptor(256, 32, 1, 0, 1), *[0] * 7], np.uint32),
        RNG.integers(0, 1 << 32, 2 * 128 * COLUMNS, dtype=np.uint32),
        np.zeros(2 * 128 * COLUMNS, np.uint32),
    ]
    wanted = left(text, arrays, "ptx", "array", blocks=2)
    assert wanted != arrays[3].tolist()
    trace = tmp_path / "machine.cutrace"
    assert left(text, arrays, "sm_100", "array", trace, blocks=2) == wanted
    verify(read_trace(trace))
    (launch,) = read_trace(trace).launches
    begin = launch.instructions().to_pylist()[0]
    assert (begin["opcode"], begin["access"]) == ("LDC", "")


@pytest.mark.parametrize("align", [8, 1024])
def test_an_address_without_the_bit_of_the_pair_is_the_first_blocks(align: int) -> None:
    arrays: list[NDArray[Any]] = [np.zeros(2, np.uint32)]
    assert left(arrivals_at_the_first(align), arrays, "sm_100", "array", blocks=2) == [1, 0]


def test_more_columns_than_there_are_is_a_fault_of_machine_code() -> None:
    text = text_of("mov.u32 %r2, 0").replace("[slot], 64;\n", "[slot], 64;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\n", 1)  # fmt: skip
    arrays: list[NDArray[Any]] = [np.zeros(1, np.uint64)] * 5
    said = r"of 512 columns never ends: columns 0 to 63 are allocated"
    with pytest.raises(KernelFault, match=said):
        left(text, [np.zeros(128 * COLUMNS * 4, np.uint8), *arrays[1:3],
                    *[np.zeros(128 * COLUMNS, np.uint32)] * 2], "sm_100", "array")  # fmt: skip

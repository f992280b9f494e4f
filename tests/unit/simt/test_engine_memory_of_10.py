"""Memory instructions of compute capability 10.0, and `multimem` on one device."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from ptx.ptx_run import run_kernel, same_under_both

from cutrace.base.errors import KernelFault

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def run(
    body: str, arrays: list[NDArray[Any]], lanes: int = 32, shared: int = 4096
) -> list[NDArray[Any]]:
    """A kernel over arrays p0, p1, ...: %t is the thread, %s the address of shared memory."""
    parameters = ", ".join(f".param .u64 p{k}" for k in range(len(arrays)))
    loads = "".join(f"ld.param.u64 %p{k}, [p{k}]; " for k in range(len(arrays)))
    text = (
        f"{HEAD}.visible .entry k({parameters})\n{{\n.shared .align 1024 .b8 box[{shared}];\n"
        ".reg .b64 %p<4>; .reg .b64 %q<8>; .reg .b32 %r<32>; .reg .b32 %t; .reg .b32 %s;\n"
        ".reg .b16 %h<4>; .reg .b128 %w; .reg .pred %c<4>;\n"
        f"{loads}mov.u32 %t, %tid.x; mov.u32 %s, box;\n{body}\nret;\n}}\n"
    )
    return same_under_both(lambda rows: run_kernel(text, "k", lanes, arrays, lanes, sink=rows))


def test_a_reduction_over_one_device_is_what_that_has() -> None:
    found = run(
        "mul.wide.u32 %q0, %t, 16; add.u64 %q1, %p0, %q0; add.u64 %q2, %p1, %q0;\n"
        "multimem.ld_reduce.weak.global.add.acc::f32.v4.f16x2 {%r0, %r1, %r2, %r3}, [%q1];\n"
        "multimem.st.weak.global.v4.f32 [%q2], {%r0, %r1, %r2, %r3};\n"
        "multimem.red.relaxed.sys.global.add.u32 [%p2], %t;",
        [np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32), np.full(1, 7, np.uint32)],
    )
    assert found[1].tolist() == list(range(128))
    assert found[2].tolist() == [7 + 31 * 32 // 2]


def test_bulk_stores_are_zeros() -> None:
    found = run(
        "mad.lo.u32 %r0, %t, 8, %s; mov.b64 %q0, -1; st.shared.b64 [%r0], %q0; bar.warp.sync -1;\n"
        "setp.ne.u32 %c0, %t, 0; add.u32 %r1, %s, 16; mov.u64 %q1, 32;\n"
        "@!%c0 st.bulk.weak.shared::cta [%r1], %q1, 0; bar.warp.sync -1;\n"
        "ld.shared.b64 %q2, [%r0]; mad.wide.u32 %q3, %t, 8, %p0; st.global.b64 [%q3], %q2;",
        [np.zeros(32, np.int64)],
    )
    assert found[0].tolist() == [-1] * 2 + [0] * 4 + [-1] * 26


def test_a_bulk_store_of_a_part_of_eight_bytes_is_a_fault() -> None:
    with pytest.raises(KernelFault, match=r"`st.bulk.* of 12 bytes, no multiple of 8"):
        run("mov.u64 %q0, 12; st.bulk.shared::cta [%s], %q0, 0;", [np.zeros(1, np.int64)])


def test_asynchronous_stores_reach_global_memory() -> None:
    found = run(
        "mad.wide.u32 %q0, %t, 4, %p0; add.u32 %r0, %t, 100;\n"
        "st.async.mmio.release.gpu.global.b32 [%q0], %r0;\n"
        "red.async.mmio.release.sys.global.add.u32 [%p1], %t;",
        [np.zeros(32, np.uint32), np.zeros(1, np.uint32)],
    )
    assert found[0].tolist() == list(range(100, 132))
    assert found[1].tolist() == [496]


def test_a_mask_chooses_the_bytes_of_each_chunk() -> None:
    found = run(
        "mad.lo.u32 %r0, %t, 4, %s; mad.lo.u32 %r1, %t, 0x01010101, 0x01010101;\n"
        "st.shared.b32 [%r0], %r1; bar.warp.sync -1; setp.ne.u32 %c0, %t, 0;\n"
        "mov.u32 %r2, 32; mov.b16 %h0, 0x8003;\n"
        "@!%c0 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%p0], [%s], %r2, %h0;",
        [np.zeros(48, np.uint8)],
    )
    # bytes 0, 1 and 15 of each 16: words 0 and 3 of the first, 4 and 7 of the second; none after
    wanted = np.zeros(48, np.uint8)
    wanted[[0, 1, 15, 16, 17, 31]] = [1, 1, 4, 5, 5, 8]
    assert found[0].tolist() == wanted.tolist()


MAP = (
    "mad.lo.u32 %r0, %t, 4, %s; mov.u32 %r1, 0; st.shared.u32 [%r0], %r1; bar.warp.sync -1;\n"
    "setp.ne.u32 %c0, %t, 0; @%c0 bra MADE;\n"
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s], %p0;\n"
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%s], 1;\n"
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 0, 4;\n"
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 1, {rows};\n"
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%s], 0, 8;\n"
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%s], 1, 16; mov.u64 %q0, 32;\n"
    "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%s], 0, %q0;\n"
    "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%s], 0, 1;\n"
    "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%s], 1, 1;\n"
    "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%s], 2;\n"
    "MADE: bar.warp.sync -1;\n"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
    " [%p1], [%s], 128;\n"
    "@%c0 bra DONE;\n"
)
"""A map of 16 rows of 8 words, in boxes of 4 words and some rows, made in p1."""


def test_four_rows_are_gathered_and_scattered() -> None:
    found = run(
        MAP.replace("{rows}", "1") + "add.u32 %r2, %s, 1024; add.u32 %r3, %s, 128;\n"
        "mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r4, 4; mov.u32 %r5, 9; mov.u32 %r6, 2;\n"
        "mov.u32 %r7, 40; mov.u32 %r8, 3;\n"
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4"
        " [%p1, {%r4, %r5, %r6, %r7, %r8}];\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        " [%r3], [%p1, {%r4, %r5, %r6, %r7, %r8}], [%r2];\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %c1, [%r2], 0; @!%c1 bra WAIT;\n"
        "tensormap.replace.tile.global_address.global.b1024.b64 [%p1], %p2; mov.u32 %r9, 0;\n"
        "mov.u32 %r10, 1; mov.u32 %r11, 15;\n"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
        " [%p1, {%r9, %r11, %r9, %r5, %r10}], [%r3];\nDONE:",
        [np.arange(128, dtype=np.uint32), np.zeros(32, np.uint32), np.zeros(128, np.uint32)],
    )
    # rows 9, 2, 40 (beyond: zeros) and 3 from column 4 on go to rows 15, 0, 9 and 1 from 0 on
    wanted = np.zeros((16, 8), np.uint32)
    for there, here in ((15, 9), (0, 2), (1, 3)):
        wanted[there, :4] = 8 * here + np.arange(4, 8)
    assert found[2].reshape(16, 8).tolist() == wanted.tolist()


def test_four_rows_need_a_map_of_boxes_of_one_row() -> None:
    with pytest.raises(KernelFault, match="takes a map of boxes of 2 rows, not 1"):
        run(
            MAP.replace("{rows}", "2") + "mov.u32 %r4, 0;\n"
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4"
            " [%p1, {%r4, %r4, %r4, %r4, %r4}];\nDONE:",
            [np.arange(128, dtype=np.uint32), np.zeros(32, np.uint32)],
        )


FILL = "mad.lo.u32 %r0, %t, 16, %s; mad.wide.u32 %q0, %t, 16, %p0;\n" \
       "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%q0];\n" \
       "st.shared.v4.b32 [%r0], {%r1, %r2, %r3, %r4}; bar.warp.sync -1;\n"  # fmt: skip
"""32 rows of 16 bytes from p0 to shared memory; %r0 is the address of each lane's row."""


def test_a_transposed_matrix_of_16_by_16_bytes() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (32, 16)).astype(np.uint8)
    found = run(
        FILL + "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r5, %r6, %r7, %r8}, [%r0];\n"
        "mad.wide.u32 %q1, %t, 16, %p1; st.global.v4.b32 [%q1], {%r5, %r6, %r7, %r8};",
        [rows.reshape(-1), np.zeros(512, np.uint8)],
    )[1].reshape(32, 4, 4)
    for lane in range(32):
        for register in range(4):
            row = 16 * (register // 2) + 4 * (lane % 4) + 2 * (register % 2)
            column = lane // 4
            assert found[lane, register].tolist() == [
                rows[row, column], rows[row + 1, column],
                rows[row, column + 8], rows[row + 1, column + 8],
            ]  # fmt: skip


@pytest.mark.parametrize(("form", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_rows_of_narrow_numbers_become_bytes(form: str, bits: int) -> None:
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, (32, 16))
    whole = [sum(int(n) << bits * k for k, n in enumerate(row)) for row in numbers]
    rows = np.array([list(word.to_bytes(16, "little")) for word in whole], np.uint8)
    found = run(
        FILL
        + f"ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{form} {{%r5, %r6, %r7, %r8}}, [%r0];\n"
        "mad.wide.u32 %q1, %t, 16, %p1; st.global.v4.b32 [%q1], {%r5, %r6, %r7, %r8};",
        [rows.reshape(-1), np.zeros(512, np.uint8)],
    )[1].reshape(32, 4, 4)
    for lane in range(32):
        for matrix in range(4):
            row = numbers[8 * matrix + lane // 4]
            assert found[lane, matrix].tolist() == row[4 * (lane % 4) :][:4].tolist()


def test_a_stored_matrix_of_bytes_is_transposed() -> None:
    registers = np.random.default_rng(1).integers(0, 256, (32, 2, 4)).astype(np.uint8)
    found = run(
        "mad.wide.u32 %q0, %t, 8, %p0; ld.global.v2.b32 {%r1, %r2}, [%q0];\n"
        "mad.lo.u32 %r0, %t, 16, %s;\n"
        "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r0], {%r1, %r2}; bar.warp.sync -1;\n"
        "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r0]; mad.wide.u32 %q1, %t, 16, %p1;\n"
        "st.global.v4.b32 [%q1], {%r3, %r4, %r5, %r6};",
        [registers.reshape(-1), np.zeros(512, np.uint8)],
    )[1].reshape(32, 16)
    for lane in range(32):
        for matrix in range(2):
            row, column = 8 * matrix + 2 * (lane % 4), lane // 4
            assert registers[lane, matrix].tolist() == [
                found[row, column], found[row + 1, column],
                found[row, column + 8], found[row + 1, column + 8],
            ]  # fmt: skip


def test_no_cluster_is_left_to_take_over() -> None:
    found = run(
        "setp.ne.u32 %c0, %t, 0; @%c0 bra DONE; add.u32 %r0, %s, 16;\n"
        "mbarrier.init.shared.b64 [%r0], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 16;\n"
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
        " [%s], [%r0];\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %c1, [%r0], 0; @!%c1 bra WAIT;\n"
        "ld.shared.b128 %w, [%s]; mov.u32 %r1, 5;\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %c2, %w;\n"
        "@%c2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, _, _, _}, %w;\n"
        "selp.u32 %r2, 1, 0, %c2; st.global.v2.u32 [%p0], {%r2, %r1};\nDONE:",
        [np.full(2, 9, np.uint32)],
    )
    assert found[0].tolist() == [0, 5]


def test_the_answer_has_the_first_block() -> None:
    found = run(
        "mov.b64 %q0, 0x700000005; mov.b64 %q1, 0x10000000b; mov.b128 %w, {%q0, %q1};\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %c2, %w;\n"
        "selp.u32 %r3, 1, 0, %c2;\n"
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, _}, %w;\n"
        "st.global.v4.u32 [%p0], {%r0, %r1, %r2, %r3};\n"
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r4, %w;\n"
        "st.global.u32 [%p0+16], %r4;",
        [np.zeros(8, np.uint32)], 1,
    )  # fmt: skip
    assert found[0].tolist() == [5, 7, 11, 1, 7, 0, 0, 0]

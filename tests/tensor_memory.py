"""A kernel of four warps around one `tcgen05` instruction, with tensor memory before and after.

The instruction has %ta, the address of 64 columns of tensor memory, %da and %db, descriptors of the
image in shared memory, %w0 to %w7, words, and %yes and %no, predicates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptx.ptx_run import run_kernel

COLUMNS = 64
IMAGE = 32768
_REGISTERS = ", ".join(f"%v{k}" for k in range(COLUMNS))
_LOADS = " ".join(f"ld.global.b32 %v{k}, [%p5+{4 * k}];" for k in range(COLUMNS))
_STORES = " ".join(f"st.global.b32 [%p6+{4 * k}], %v{k};" for k in range(COLUMNS))

TEXT = f""".version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4)
{{
.shared .align 1024 .b8 box[{IMAGE}]; .shared .align 16 .b8 slot[16]; .shared .align 8 .b64 gate;
.reg .b64 %p<8>; .reg .b64 %q<4>; .reg .b64 %da; .reg .b64 %db; .reg .b32 %r<16>; .reg .b32 %w<8>;
.reg .b32 %v<{COLUMNS}>; .reg .b32 %ta; .reg .b32 %tw; .reg .pred %c<4>; .reg .pred %yes;
.reg .pred %no; .reg .b16 %h<2>;
ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u64 %p2, [p2]; ld.param.u64 %p3, [p3];
ld.param.u64 %p4, [p4];
mov.u32 %r0, %tid.x; mov.u32 %r1, box; mov.u32 %r2, 0;
setp.eq.u32 %yes, 0, 0; setp.eq.u32 %no, 0, 1;
mov.u32 %r9, %ctaid.x; mad.wide.u32 %p0, %r9, {IMAGE}, %p0; mad.wide.u32 %p3, %r9, 32768, %p3;
mad.wide.u32 %p4, %r9, 32768, %p4;
FILL: cvt.u64.u32 %q0, %r2; mad.wide.u32 %q0, %r0, 16, %q0; add.u64 %q1, %p0, %q0;
ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [%q1]; mad.lo.u32 %r7, %r0, 16, %r1; add.u32 %r7, %r7, %r2;
st.shared.v4.b32 [%r7], {{%r3, %r4, %r5, %r6}}; add.u32 %r2, %r2, 2048;
setp.lt.u32 %c0, %r2, {IMAGE}; @%c0 bra FILL;
setp.ne.u32 %c1, %r0, 0; @!%c1 mbarrier.init.shared.b64 [gate], 1;
shr.u32 %r8, %r0, 5; setp.ne.u32 %c2, %r8, 0;
@%c2 bra ALLOCATED;
tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [slot], {COLUMNS};
tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;
ALLOCATED: fence.proxy.async.shared::cta; bar.sync 0;
ld.shared.u32 %ta, [slot]; shl.b32 %tw, %r8, 21; add.u32 %tw, %tw, %ta;
mad.wide.u32 %p5, %r0, {4 * COLUMNS}, %p3; {_LOADS}
tcgen05.st.sync.aligned.32x32b.x{COLUMNS}.b32 [%tw], {{{_REGISTERS}}};
tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; CLUSTER
tcgen05.fence::after_thread_sync;
ld.global.v2.b64 {{%da, %db}}, [%p1]; ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%p2];
ld.global.v4.b32 {{%w4, %w5, %w6, %w7}}, [%p2+16];
shr.u32 %r8, %r1, 4; cvt.u64.u32 %q2, %r8; add.u64 %da, %da, %q2; add.u64 %db, %db, %q2;
@%c1 bra ISSUED;
BODY
ISSUED: mbarrier.try_wait.parity.shared.b64 %c3, [gate], 0; @!%c3 bra ISSUED;
tcgen05.fence::after_thread_sync; CLUSTER
tcgen05.ld.sync.aligned.32x32b.x{COLUMNS}.b32 {{{_REGISTERS}}}, [%tw];
tcgen05.wait::ld.sync.aligned;
mad.wide.u32 %p6, %r0, {4 * COLUMNS}, %p4; {_STORES}
tcgen05.fence::before_thread_sync; bar.sync 0;
@%c2 bra DONE;
tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %ta, {COLUMNS};
DONE: ret;
}}
"""

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [gate];"


def text_of(body: str) -> str:
    """The kernel of a block by itself."""
    return TEXT.replace("BODY", f"{body};\n{COMMIT}").replace("GROUP", "1").replace("CLUSTER", "")


def run(
    body: str, image: NDArray[np.uint8], descriptors: tuple[int, int], words: list[int],
    before: NDArray[np.uint32], engine: str = "auto",
) -> NDArray[np.uint32]:  # fmt: skip
    """Run an instruction; return tensor memory (128, 64) afterwards."""
    arrays: list[NDArray[Any]] = [
        np.concatenate([image, np.zeros(IMAGE - len(image), np.uint8)]).view(np.uint32),
        np.array(descriptors, np.uint64),
        np.array([*words, *[0] * (8 - len(words))], np.uint32),
        before.reshape(-1),
        np.zeros(128 * COLUMNS, np.uint32),
    ]
    found: NDArray[Any] = run_kernel(text_of(body), "k", 128, arrays, engine=engine)[-1]
    return found.reshape(128, COLUMNS)


def empty() -> NDArray[np.uint32]:
    """Tensor memory of zeros."""
    return np.zeros((128, COLUMNS), np.uint32)


def chunks(matrix: NDArray[Any], row_bytes: int = 32) -> NDArray[np.uint8]:
    """A matrix by rows without swizzle: the first 16 bytes of all rows, then the next 16."""
    octets = np.ascontiguousarray(matrix).view(np.uint8).reshape(-1, row_bytes // 16, 16)
    return np.ascontiguousarray(octets.swapaxes(0, 1)).reshape(-1)


def descriptor(start: int, leading: int, stride: int, swizzle: int = 0) -> int:
    """A descriptor of bytes (PTX ISA 9.7.16.4.1)."""
    fields = start >> 4, leading >> 4 << 16, stride >> 4 << 32, 1 << 46, swizzle << 61
    return sum(fields)


def of_chunks(start: int, rows: int) -> int:
    """The descriptor of `chunks`: 8 rows are 128 bytes, the next 16 bytes of all rows follow."""
    return descriptor(start, 16 * rows, 128)


def instruction_descriptor(m: int, n: int, to: int, a: int, b: int, others: int = 0) -> int:
    """Shape and types of a product without scales (PTX ISA 9.7.16.4.2)."""
    return to << 4 | a << 7 | b << 10 | n // 8 << 17 | m // 16 << 24 | others


def arrivals_at_the_first(align: int) -> str:
    """A kernel of a pair: all 256 lanes arrive at the first block's barrier, whose address each
    takes from its own, two with a commit, too; stored is whether each block's phase ended. The
    compiler clears the bits of the mask that alignment makes 0, too."""
    return f""".version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p0) .explicitcluster .reqnctapercluster 2
{{
.shared .align {align} .b64 gate; .reg .b64 %p<2>; .reg .b32 %r<8>; .reg .pred %c<2>;
ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, gate; mov.u32 %r2, %ctaid.x;
setp.ne.u32 %c0, %r0, 0; @!%c0 mbarrier.init.shared.b64 [%r1], 258;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
and.b32 %r3, %r1, {-(1 << 24) - align}; mbarrier.arrive.shared::cluster.b64 _, [%r3];
@!%c0 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r3];
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mbarrier.test_wait.parity.shared.b64 %c1, [%r1], 0; selp.u32 %r4, 1, 0, %c1;
mul.wide.u32 %p1, %r2, 4; add.u64 %p0, %p0, %p1; st.global.u32 [%p0], %r4; ret;
}}
"""

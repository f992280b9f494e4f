"""Which registers an instruction writes and reads."""

import pytest
from ptx.ptx_text import instruction

from cutrace.tracer.ptx.opcodes import destinations, sources

OUTSIDE = ".extern .func (.param .b32 r) f (.param .b64 x);\n.global .texref image;"


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("add.s32 %r1, %r2, %r3;", "%r1", "%r2 %r3"),
        ("@%p1 add.s32 %r1, %r1, 1;", "%r1", "%p1 %r1"),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd1+8];", "%r1 %r2", "%rd1"),
        ("st.global.v2.u32 [%rd1], {%r1, %r2};", "", "%rd1 %r1 %r2"),
        ("setp.lt.and.u32 %p1|%p2, %r1, %r2, !%p3;", "%p1 %p2", "%r1 %r2 %p3"),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "%r1", "%rd1 %r2 %r3"),
        ("atom.global.add.u32 _, [%rd1], %r2;", "", "%rd1 %r2"),
        ("red.global.add.u32 [%rd1], %r2;", "", "%rd1 %r2"),
        ("bar.sync %r1, %r2;", "", "%r1 %r2"),
        ("bar.red.popc.u32 %r1, %r2, %p1;", "%r1", "%r2 %p1"),
        ("barrier.cta.red.and.pred %p1, %r2, %p2;", "%p1", "%r2 %p2"),
        ("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;", "%r1 %p1", "%r2"),
        ("mov.b64 {%r1, _}, %rd1;", "%r1", "%rd1"),
        ("mov.b64 %rd1, {%r1, %r2};", "%rd1", "%r1 %r2"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", "", "%r1 %rd1"),
        ("prefetch.global.L2 [%rd1];", "", "%rd1"),
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, _}, [image, {%f4, %f5}];", "%f1 %f2 %f3", "%f4 %f5"),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "%f1 %f2 %f3 %f4", "%rd1 %r1"),
        ("sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};", "", "%rd1 %r1 %r2"),
        ("suld.b.1d.b32.trap {%r2}, [%rd1, {%r1}];", "%r2", "%rd1 %r1"),
        ("mbarrier.init.shared.b64 [%r1], 32;", "", "%r1"),
        ("mbarrier.arrive.shared.b64 %rd1, [%r1];", "%rd1", "%r1"),
        ("mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;", "%p1", "%r1 %rd1"),
        ("wmma.store.d.sync.aligned.f32 [%rd1], {%f1, %f2}, %r1;", "", "%rd1 %f1 %f2 %r1"),
        ("wgmma.mma_async.sync.f32 {%f1}, %rd1, %rd2, %p1, 1;", "%f1", "%f1 %rd1 %rd2 %p1"),
        ("tcgen05.st.sync.aligned.16x64b.x1.b32 [%r1], {%r2};", "", "%r1 %r2"),
        ("tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r2}, [%r1];", "%r2", "%r1"),
        ("call (%r1), f, (%rd1);", "%r1", "%rd1"),
        ("@%p1 bra HERE; HERE:", "", "%p1"),
        ("ret;", "", ""),
        ("frobnicate.f32 %f1, [%rd1], {%f2, %f3};", "%f1", "%rd1 %f2 %f3"),
    ],
)
def test_registers_written_and_read(text: str, written: str, read: str) -> None:
    parsed = instruction(text, OUTSIDE)
    assert " ".join(register.name for register in destinations(parsed)) == written
    assert " ".join(register.name for register in sources(parsed)) == read

"""What an instruction is, as the trace says it: each row from the PTX ISA's own description."""

import pytest
from ptx.ptx_text import instruction

from cutrace.tracer.isa.table import Facts, facts_of
from cutrace.traces.schema import Space

GLOBAL, SHARED = 1 << Space.GLOBAL, 1 << Space.SHARED
TEXTURE = 1 << Space.TEXTURE
GENERIC = GLOBAL | SHARED | 1 << Space.LOCAL | 1 << Space.CONST


def facts(text: str, read: bool = True) -> Facts:
    return facts_of(instruction(text), read)


@pytest.mark.parametrize(
    ("text", "kind", "operation", "flops"),
    [
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", "single", "fma", 2),
        ("fma.rn.f16x2 %r1, %r2, %r3, %r4;", "half", "fma", 2 * 2),
        ("sqrt.rn.f64 %fd1, %fd2;", "double", "special", 1),
        ("max.f32 %f1, %f2, %f3;", "single", "", 0),
        ("mad.lo.s32 %r1, %r2, %r3, %r4;", "integer", "", 0),
        ("cvt.rn.f32.s32 %f1, %r1;", "conversion", "", 0),
        ("mov.u32 %r1, %tid.x;", "free", "", 0),
        ("ld.param.u32 %r1, [n];", "free", "", 0),
        ("@%p1 bra END; END: ret;", "control", "branch", 0),
        ("bra END; END: ret;", "free", "branch", 0),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", "exchange", "", 0),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "memory", "cas", 0),
        ("barrier.sync.aligned 0;", "other", "", 0),
        ("bar.arrive 1, 64;", "other", "arrive", 0),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "memory", "fetch", 0),
        ("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];", "memory", "filter", 0),
        ("sust.p.1d.b32.trap [%rd1, {%r1}], {%r2};", "memory", "formatted", 0),
    ],
)
def test_class_operation_and_flops(text: str, kind: str, operation: str, flops: int) -> None:
    found = facts(text)
    assert (found.kind, found.operation, found.flops) == (kind, operation, flops)


@pytest.mark.parametrize(
    ("text", "access", "reads", "writes"),
    [
        ("ld.global.f32 %f1, [%rd1];", "load", GLOBAL, 0),
        ("ld.f32 %f1, [%rd1];", "load", GENERIC, 0),
        ("st.shared.f32 [%r1], %f1;", "store", 0, SHARED),
        ("st.shared::cta.f32 [%r1], %f1;", "store", 0, SHARED),
        ("red.global.add.u32 [%rd1], 1;", "reduction", GLOBAL, GLOBAL),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", "copy", GLOBAL, SHARED),
        ("cp.async.commit_group;", "", 0, 0),
        ("prefetch.global.L2 [%rd1];", "", 0, 0),
        ("ld.param.u32 %r1, [n];", "", 0, 0),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "load", TEXTURE, 0),
        ("add.u32 %r1, %r2, %r3;", "", 0, 0),
    ],
)
def test_access_and_state_spaces(text: str, access: str, reads: int, writes: int) -> None:
    found = facts(text)
    assert (found.access, found.reads, found.writes) == (access, reads, writes)


def test_an_atomic_whose_result_nobody_reads_is_a_reduction_unless_it_exchanges() -> None:
    assert facts("atom.global.add.u32 %r1, [%rd1], 1;", read=True).access == "atomic"
    assert facts("atom.global.add.u32 %r1, [%rd1], 1;", read=False).access == "reduction"
    assert facts("atom.global.exch.b32 %r1, [%rd1], 1;", read=False).access == "atomic"


@pytest.mark.parametrize(
    ("text", "order", "scope"),
    [
        ("ld.global.u32 %r1, [%rd1];", "weak", ""),
        ("ld.volatile.global.u32 %r1, [%rd1];", "volatile", ""),
        ("ld.acquire.gpu.global.u32 %r1, [%rd1];", "acquire", "gpu"),
        ("st.relaxed.cta.shared::cta.u32 [%r1], %r2;", "relaxed", "cta"),
        ("fence.acq_rel.sys;", "acq_rel", "sys"),
        ("membar.gl;", "", "gpu"),
    ],
)
def test_memory_order_and_scope(text: str, order: str, scope: str) -> None:
    found = facts(text)
    assert (found.order, found.scope) == (order, scope)

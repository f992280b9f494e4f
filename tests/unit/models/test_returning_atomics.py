"""Which unused results of atomics the machine code returns, as ptxas 12.9 and 13.0 assemble them.

Each row is an atomic and the opcode that ptxas makes of it, the same on 7.5, 8.0, 8.6 and 8.9, and
another from 9.0 on (9.0, 10.0 and 12.0): RED, or ATOMG and ATOM, which the profiler counts as
`atom`.
"""

from pathlib import Path

import pytest

import cutrace
from cutrace.tracer.session.source.record import record

ATOM, RED = (f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red"))
KERNEL = """\
// cutrace: k<<<1, 32>>>(out:u32[64])
.version 7.8
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .u64 %o, %g, %w;
    .reg .u32 %r, %t;
    .reg .f32 %f, %x;
    .reg .pred %p;
    ld.param.u64 %o, [out];
    cvta.to.global.u64 %g, %o;
    mov.u32 %t, %tid.x;
    cvt.rn.f32.u32 %f, %t;
    {body}
    ret;
}}
"""
REDUCED = {
    "unused": "atom.global.add.u32 %r, [%g], 1;",
    "a barrier": "bar.sync 0; atom.global.add.u32 %r, [%g], %t; bar.sync 0;",
    "a barrier of a warp": "bar.warp.sync 0xffffffff; atom.global.add.u32 %r, [%g], %t;",
    "red and a fence": "membar.gl; red.global.add.u32 [%g], %t;",
    "a fence of proxies": "fence.proxy.alias; atom.global.add.u32 %r, [%g], %t;",
    "release": "atom.release.gpu.global.add.u32 %r, [%g], %t;",
    "a store that releases": "st.release.gpu.global.u32 [%g+64], %t; "
    "atom.global.add.u32 %r, [%g], %t;",
}
KEPT_BY_FENCES = {
    "before": "membar.gl; atom.global.add.u32 %r, [%g], %t;",
    "behind": "atom.global.add.f32 %x, [%g], %f; fence.acq_rel.gpu;",
    "of a block": "membar.cta; atom.global.min.u32 %r, [%g], %t;",
    "sequentially consistent": "fence.sc.sys; atom.global.or.b32 %r, [%g], %t;",
    "in another branch": "setp.eq.u32 %p, %t, 99; @%p membar.sys; "
    "atom.global.add.u32 %r, [%g], %t;",
}
ALWAYS_ATOMIC = {
    "generic": "atom.add.u32 %r, [%o], %t;",
    "generic float": "atom.add.f32 %x, [%o], %f;",
    "generic red": "red.add.f32 [%o], %f;",
    "acquire": "atom.acquire.gpu.global.add.u32 %r, [%g], %t;",
    "acquire and release": "atom.acq_rel.gpu.global.add.u32 %r, [%g], %t;",
    "exchange": "atom.global.exch.b32 %r, [%g], %t;",
}


def requests(tmp_path: Path, body: str, code: str = "assembled") -> dict[str, tuple[int, int]]:
    """Requests counted as `atom` and as `red`, by device."""
    source = tmp_path / "k.ptx"
    source.write_text(KERNEL.format(body=body))
    trace = cutrace.read_trace(record(source, [], tmp_path / "k.cutrace"))
    return {
        device: (int(counters[ATOM] or 0), int(counters[RED] or 0))
        for device in ("t4", "a100", "rtx4090", "h100", "b200", "rtx5090")
        for counters in [cutrace.analyze(trace, device, code=code).launches[0].counters]
    }


OLDER = ("t4", "a100", "rtx4090")


@pytest.mark.parametrize("body", REDUCED.values(), ids=REDUCED)
def test_an_unused_result_is_not_returned(tmp_path: Path, body: str) -> None:
    assert set(requests(tmp_path, body).values()) == {(0, 1)}


@pytest.mark.parametrize("body", KEPT_BY_FENCES.values(), ids=KEPT_BY_FENCES)
def test_from_9_on_a_fence_of_the_kernel_keeps_results(tmp_path: Path, body: str) -> None:
    found = requests(tmp_path, body)
    assert found == {name: (0, 1) if name in OLDER else (1, 0) for name in found}


@pytest.mark.parametrize("body", ALWAYS_ATOMIC.values(), ids=ALWAYS_ATOMIC)
def test_what_red_cannot_do_returns_a_result_everywhere(tmp_path: Path, body: str) -> None:
    assert set(requests(tmp_path, body).values()) == {(1, 0)}


def test_the_atomics_of_ptx_are_counted_as_written(tmp_path: Path) -> None:
    body = KEPT_BY_FENCES["before"] + ALWAYS_ATOMIC["generic red"]
    assert set(requests(tmp_path, body, code="ptx").values()) == {(0, 2)}

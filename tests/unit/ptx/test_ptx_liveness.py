"""Registers that a block, or what follows it, reads before writing."""

from ptx.ptx_text import kernel_around

from cutrace.tracer.ptx.kernel import Kernel


def live_in(kernel: Kernel) -> list[set[str]]:
    return [{name for _, name in names} for names in kernel.live_in]


def test_what_a_later_block_reads_is_live_before_it() -> None:
    kernel = kernel_around(
        """mov.u32 %r1, 1; mov.u32 %r2, 2; bar.sync 0;
        add.u32 %r3, %r1, 1; bar.sync 0;
        st.global.u32 [%rd1], %r3; ret;"""
    )
    assert live_in(kernel) == [{"%rd1"}, {"%rd1", "%r1"}, {"%rd1", "%r3"}]
    assert kernel.live_out[0] == {(0, "%rd1"), (0, "%r1")}


def test_a_loop_keeps_what_it_reads_alive_all_around() -> None:
    kernel = kernel_around(
        """mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, %r3;
        @%p1 bra LOOP; st.global.u32 [%rd1], %r1; ret;"""
    )
    assert live_in(kernel) == [
        {"%r2", "%r3", "%rd1"},
        {"%r1", "%r2", "%r3", "%rd1"},
        {"%r1", "%rd1"},
    ]


def test_a_guarded_write_keeps_the_old_value_alive() -> None:
    kernel = kernel_around("bar.sync 0; @%p1 mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret;")
    assert live_in(kernel)[1] == {"%p1", "%r1", "%rd1"}


def test_each_function_has_its_own_registers() -> None:
    callee = ".func f() { .reg .b32 %r<4>; bar.sync 0; add.u32 %r1, %r2, 1; ret; }"
    kernel = kernel_around("call f; add.u32 %r3, %r1, 1; ret;", callee)
    assert list(map(set, kernel.live_in)) == [
        {(0, "%r1")},
        {(0, "%r1")},
        {(1, "%r2")},
        {(1, "%r2")},
    ]
    assert kernel.live_out[0] == {(0, "%r1")}  # during the call too


def test_old_calls_read_and_write_registers() -> None:
    callee = ".func (.reg .u32 y) f (.reg .u32 x) { bar.sync 0; add.u32 y, x, 1; bar.sync 0; ret; }"
    kernel = kernel_around("call (%r1), f, (%r2); st.global.u32 [%rd1], %r1; ret;", callee)
    assert live_in(kernel) == [{"%r2", "%rd1"}, {"%r1", "%rd1"}, {"x"}, {"x"}, {"y"}]

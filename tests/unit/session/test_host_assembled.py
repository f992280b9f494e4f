"""Which loads and stores of a kernel became others, told from machine code by lines of its PTX."""

from cutrace.tracer.front.sass import MachineInstruction
from cutrace.tracer.ptx.kernel import Kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.session.resources import sass_accesses
from cutrace.tracer.simt.kernel.spin_loop import link_with_divergent_sync
from cutrace.traces.schema import AssembledAccess

HEAD = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
ld.param.u64 %rd1, [p];
mov.u32 %r5, %tid.x;
setp.lt.u32 %p1, %r5, 8;
"""


def kernel(body: str) -> Kernel:
    """A kernel whose body begins at pc 3, PTX line 9."""
    return link_with_divergent_sync(parse_module(f"{HEAD}{body}\nret;\n}}\n"), "k")


def made(*instructions: tuple[int, str, int, bool]) -> dict[int, list[MachineInstruction]]:
    """Machine instructions: line, operation, bytes, whether a predicate guards it."""
    found: dict[int, list[MachineInstruction]] = {}
    for number, (line, operation, width, guarded) in enumerate(instructions):
        one = MachineInstruction(16 * number, operation, width, guarded)
        found.setdefault(line, []).append(one)
    return found


def changes(body: str, *instructions: tuple[int, str, int, bool]) -> list[AssembledAccess]:
    return [*sass_accesses(kernel(body), made(*instructions))]


FOUR = "\n".join(f"ld.global.u32 %r{n}, [%rd1+{4 * n}];" for n in range(4))


def test_a_wide_load_stands_for_its_neighbours() -> None:
    assert changes(FOUR, (9, "LDG", 16, False)) == [
        AssembledAccess(3, ((0, 16),)),
        *(AssembledAccess(pc, ()) for pc in (4, 5, 6)),
    ]


def test_a_wide_load_begins_where_its_lowest_neighbour_does() -> None:
    # the machine code names the line of the third: words 0 and 8 bytes before it, 4 behind
    assert changes(FOUR, (11, "LDG", 16, False))[2] == AssembledAccess(5, ((-8, 16),))


def test_loads_of_another_base_are_not_joined() -> None:
    body = f"{FOUR}\nadd.s64 %rd2, %rd1, 64;\nld.global.u32 %r6, [%rd2+4];"
    assert changes(body, *((line, "LDG", 4, False) for line in (9, 10, 11, 12, 14))) == []


def test_a_load_without_machine_code_is_gone_and_a_store_to_global_memory_is_not() -> None:
    body = "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+8], %r1;"
    assert changes(body, (99, "EXIT", 0, False)) == [AssembledAccess(3, ())]


def test_elements_that_nobody_reads_are_not_loaded() -> None:
    body = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\nst.global.v2.u32 [%rd1], {%r3, %r4};"
    assert changes(body, (9, "LDG", 8, False), (10, "STG", 8, False)) == [
        AssembledAccess(3, ((8, 8),))
    ]


def test_loads_that_ptxas_parted_on_the_line_of_one_are_all_counted() -> None:
    # ptxas gives both loads the line of the first; it has no instruction for an unread third.
    body = "ld.global.u32 %r1, [%rd1+4];\nld.global.u32 %r2, [%rd1+12];\n"
    read = "st.global.v2.u32 [%rd1+64], {%r1, %r2};"
    store = (11, "STG", 8, False)
    twice = [(9, "LDG", 4, False)] * 2
    assert changes(f"{body}{read}", *twice, store) == []
    assert changes(f"{body}{read}", twice[0], store) == [AssembledAccess(4, ())]
    unread = "ld.global.u32 %r3, [%rd1+8];\n"
    assert changes(f"{body}{unread}{read}", *twice, (12, "STG", 8, False)) == [
        AssembledAccess(5, ())
    ]


def test_a_parted_load_issues_as_the_load_whose_line_it_has() -> None:
    body = "@%p1 bra L;\nld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+8];\nL:\n"
    read = "st.global.v2.u32 [%rd1+64], {%r1, %r2};"
    store = (13, "STG", 8, False)
    assert changes(f"{body}{read}", *[(10, "LDG", 4, True)] * 2, store) == [
        AssembledAccess(pc, ((0, 4),), issued=3) for pc in (4, 5)
    ]
    kept = (9, "BRA", 0, True), *[(10, "LDG", 4, False)] * 2, store
    assert changes(f"{body}{read}", *kept) == []


BRANCH = "@%p1 bra L;\nst.global.u32 [%rd1], %r5;\nL:"


def test_a_branch_that_became_a_predicate_issues_its_store_for_all_that_come() -> None:
    assert changes(BRANCH, (10, "STG", 4, True)) == [AssembledAccess(4, ((0, 4),), issued=3)]


def test_a_branch_that_the_machine_code_has_keeps_its_store_from_the_others() -> None:
    assert changes(BRANCH, (9, "BRA", 0, True), (10, "STG", 4, False)) == []


def test_nothing_is_said_of_two_accesses_in_one_line() -> None:
    assert changes("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4];") == []


def test_loads_that_never_run_before_a_copy_are_counted() -> None:
    body = "cp.async.cg.shared.global [%r1], [%rd1], 16;"
    spare = [(9, "!LDS", 0, True)] * 3
    assert changes(body, *spare, (9, "LDGSTS", 0, False)) == [
        AssembledAccess(3, ((0, 16),), issued=3, spare=3)
    ]

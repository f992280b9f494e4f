"""Where lanes meet of which some go another way, in graphs by hand; chips hold it on real kernels
(tests/validate/counters/loops.cu and ways.cu)."""

from collections.abc import Mapping, Sequence

from cutrace.tracer.ptx.reconvergence import (
    Kinds,
    Parting,
    immediate_post_dominators,
    partings,
    run_order,
)

EXIT = 99


def found(
    successors: Mapping[int, Sequence[int]],
    *leaving: int,
    switches: Sequence[int] = (),
    returns: Sequence[int] = (),
    is_entry: bool = True,
) -> dict[int, Parting]:
    joins = immediate_post_dominators(successors, leaving, EXIT)
    ranks = {block: rank for rank, block in enumerate(run_order(successors, 0))}
    kinds = Kinds(switches, returns, is_entry)
    return partings(successors, leaving, joins, ranks, EXIT, kinds)


def test_structured_code_meets_at_its_post_dominators() -> None:
    # if (0) 1 else 2; 3: while (3) { if (4) 5; 6 } 7
    graph = {0: [2, 1], 1: [3], 2: [3], 3: [7, 4], 4: [6, 5], 5: [6], 6: [3], 7: []}
    assert found(graph, 7) == {}


def test_lanes_meet_in_a_loop_before_others_have_left_it() -> None:
    # do { if (1) { 2: if (..) break; 3 } else 4; 5 } while (5); 6
    graph = {0: [1], 1: [4, 2], 2: [6, 3], 3: [5], 4: [5], 5: [1, 6], 6: []}
    assert found(graph, 6) == {
        1: Parting(join=5, outer_joins=(6,)),
        2: Parting(join=6, outer_joins=(6, 5), leaving=6),
    }


def test_a_loop_that_lanes_leave_in_one_place_needs_nothing() -> None:
    graph = {0: [1], 1: [4, 2], 2: [3], 3: [1], 4: []}
    assert found(graph, 4) == {}


def test_who_continues_meets_the_others_at_the_next_turn() -> None:
    # 1: while (..) { if (2) { 3: if (..) continue; 4 } else 5; 6 } 7
    graph = {0: [1], 1: [7, 2], 2: [5, 3], 3: [1, 4], 4: [6], 5: [6], 6: [1], 7: []}
    assert found(graph, 7) == {
        2: Parting(join=6, outer_joins=(1,)),
        3: Parting(join=1, outer_joins=(1, 6), leaving=1),
    }


def test_only_the_last_block_before_the_post_dominator_has_a_barrier() -> None:
    # as before, but 5 may break (8): of 6 and the next turn, the next turn is last
    graph = {0: [1], 1: [2], 2: [5, 3], 3: [1, 4], 4: [6], 5: [8, 6], 6: [1], 8: []}
    assert found(graph, 8) == {
        2: Parting(join=1, outer_joins=(8,)),
        5: Parting(join=8, outer_joins=(8, 1), leaving=8),
    }


def test_both_conditions_or_else() -> None:
    # if (0 && 1) 2 else 3; 4: who fails at 0 waits at 3 for who fails at 1
    graph = {0: [3, 1], 1: [3, 2], 2: [4], 3: [4], 4: []}
    assert found(graph, 4) == {
        0: Parting(join=3, outer_joins=(4,)),
        1: Parting(join=4, outer_joins=(4, 3), leaving=2),
    }


def test_either_condition_without_else_has_no_barrier() -> None:
    # if (0 || 1) 2; 3
    assert found({0: [2, 1], 1: [3, 2], 2: [3], 3: []}, 3) == {}


def test_a_return_in_one_side_does_not_part_the_rest() -> None:
    # if (0) { 1: if (..) return; 2 } else 3; 4; 5: ret
    graph = {0: [3, 1], 1: [5, 2], 2: [4], 3: [4], 4: [5], 5: []}
    assert found(graph, 5, returns=[5]) == {
        0: Parting(join=4, outer_joins=(5,)),
        1: Parting(join=5, outer_joins=(5, 4), leaving=5),
    }


def test_a_return_by_itself_ends_a_kernel_but_not_a_call() -> None:
    # if (0) { 1: if (..) 5: ret; 2 } else 3; 4: ret
    graph = {0: [3, 1], 1: [5, 2], 2: [4], 3: [4], 4: [], 5: []}
    assert found(graph, 4, 5) == {
        0: Parting(join=4, outer_joins=(EXIT,)),
        1: Parting(join=EXIT, outer_joins=(EXIT, 4), leaving=5),
    }
    assert found(graph, 4, 5, is_entry=False) == {}


def test_lanes_may_leave_two_loops_at_once() -> None:
    # do { do { if (2) { 3: if (..) goto 8; 4 } else 5; 6 } while (6); 7 } while (7); 8
    graph = {0: [1], 1: [2], 2: [5, 3], 3: [8, 4], 4: [6], 5: [6], 6: [2, 7], 7: [1, 8], 8: []}
    assert found(graph, 8) == {
        2: Parting(join=6, outer_joins=(8, 7)),
        3: Parting(join=8, outer_joins=(8, 7, 6), leaving=8),
        6: Parting(join=7, outer_joins=(8, 7), leaving=7),
    }


def test_what_a_switch_leaves_stays_as_it_is() -> None:
    # do { switch (1) { 2; 3: and 6, behind the loop } 4 } while (4)
    graph = {0: [1], 1: [2, 3, 6], 2: [4], 3: [4], 4: [1, 6], 6: []}
    assert found(graph, 6, switches=[1]) == {}


def test_a_loop_that_is_entered_at_two_places_stays_as_it_is() -> None:
    graph = {0: [1, 2], 1: [2], 2: [3, 4], 3: [5, 1], 4: [1], 5: []}
    assert found(graph, 5) == {}


def test_a_trap_is_no_other_way() -> None:
    # do { if (1) { 2: if (..) 3: trap; 4 } 5 } while (5); 6
    graph = {0: [1], 1: [5, 2], 2: [4, 3], 3: [], 4: [5], 5: [1, 6], 6: []}
    assert found(graph, 6) == {}

"""Control flow graphs by hand: where lanes meet again, and the order in which blocks run."""

from collections.abc import Mapping, Sequence

import pytest

from cutrace.tracer.ptx.reconvergence import immediate_post_dominators, run_order

EXIT = 99


def joins(successors: Mapping[int, Sequence[int]], *leaving: int) -> list[int]:
    found = immediate_post_dominators(successors, leaving, EXIT)
    return [found[block] for block in sorted(successors)]


def test_both_arms_of_a_branch_meet_after_it() -> None:
    #      0 -> 1, 2;  1, 2 -> 3
    assert joins({0: [1, 2], 1: [3], 2: [3], 3: []}, 3) == [3, 3, 3, EXIT]


def test_lanes_that_leave_a_loop_meet_behind_it() -> None:
    assert joins({0: [1], 1: [1, 2], 2: []}, 2) == [1, 2, EXIT]


def test_an_early_return_moves_the_meeting_place_to_the_exit() -> None:
    # 0 branches around 1, which branches to a return of its own (2) or on to 3
    assert joins({0: [3, 1], 1: [2, 3], 2: [], 3: []}, 2, 3) == [EXIT, EXIT, EXIT, EXIT]


def test_a_trap_does_not_keep_the_others_from_meeting() -> None:
    # 0: if (c) { 1: if (bad) 2: trap; 3: } 4
    assert joins({0: [4, 1], 1: [3, 2], 2: [], 3: [4], 4: []}, 4) == [4, 3, EXIT, 4, EXIT]


def test_an_endless_loop_is_joined_to_the_exit_behind_its_last_block() -> None:
    # 1: head, 2 and 3: arms, 4: back to 1
    endless = {0: [1], 1: [2, 3], 2: [4], 3: [4], 4: [1]}
    assert joins(endless) == [1, 4, 4, 4, EXIT]


def test_lanes_beside_an_endless_loop_meet_it_at_the_exit_only() -> None:
    assert joins({0: [2, 1], 1: [1], 2: []}, 2) == [EXIT, EXIT, EXIT]


def test_an_endless_loop_that_only_a_trap_leaves_is_endless() -> None:
    assert joins({0: [1], 1: [3, 2], 2: [], 3: [1]}) == [1, 3, EXIT, EXIT]


def test_a_branch_to_the_next_instruction_has_one_place_to_go() -> None:
    assert joins({0: [1, 1], 1: []}, 1) == [1, EXIT]


@pytest.mark.parametrize(
    ("successors", "order"),
    [
        ({0: []}, [0]),
        ({0: [2, 1], 1: [3], 2: [3], 3: []}, [0, 1, 2, 3]),
        # the exit of the loop stands before its body in the text
        ({0: [1], 1: [2, 3], 2: [], 3: [1]}, [0, 1, 3, 2]),
        # two nested loops, 1 (2 3) 4, of which the inner one leaves to 4 in the middle
        ({0: [1], 1: [2], 2: [4, 3], 3: [2], 4: [1, 5], 5: []}, [0, 1, 2, 3, 4, 5]),
        # an early return inside a loop comes after the loop
        ({0: [1], 1: [2, 3], 2: [], 3: [1, 4], 4: []}, [0, 1, 3, 2, 4]),
        # a loop with two entries
        ({0: [1, 2], 1: [2], 2: [1, 3], 3: []}, [0, 1, 2, 3]),
        # nobody comes to 1
        ({0: [2], 1: [2], 2: []}, [0, 2, 1]),
    ],
)
def test_blocks_run_before_their_successors_and_loops_before_what_follows(
    successors: dict[int, list[int]], order: list[int]
) -> None:
    assert run_order(successors, 0) == order


def test_deep_nests_of_loops_are_ordered() -> None:
    depth = 15  # heads 0 .. 14, then one block that goes back to each of them or leaves
    successors = {head: [head + 1] for head in range(depth)}
    successors[depth] = [*range(depth), depth + 1]
    successors[depth + 1] = []
    assert run_order(successors, 0) == list(range(depth + 2))


def test_a_tangle_of_jumps_is_ordered_in_bounded_time() -> None:
    blocks = 200
    successors = {block: [block * 7 % blocks, block + 1] for block in range(blocks)}
    successors[blocks] = []
    assert sorted(run_order(successors, 0)) == list(range(blocks + 1))

"""Names of a loop where ways meet: an array that is another on one of them has no value there."""

from typing import Any

import numpy as np
import pytest

from cutrace.jit.loop import compile_module

ONES, TWOS = np.array([1, 1, 1]), np.array([2, 2, 2])


def assigned_in_one_branch(one: Any, two: Any, number: int) -> int:
    rows = one
    if number:
        rows = two[1:]
    return int(rows[0])


def assigned_in_both_branches(one: Any, two: Any, number: int) -> int:
    if number:
        rows = two
    else:
        rows = one
        number = 3
    return int(rows[0]) + number


def bound_in_one_branch(one: Any, two: Any, number: int) -> int:
    if number:
        rows = two[1:]
    return int(rows[0])


def assigned_at_the_end_of_a_loop(one: Any, two: Any, number: int) -> int:
    total = 0
    for _ in range(number):
        total += one[0]
        one = two
    return total


def assigned_under_a_test(one: Any, two: Any, number: int) -> int:
    while one[0] < number:
        one = two[1:]
    return 0


def assigned_before_a_break(one: Any, two: Any, number: int) -> int:
    rows = one
    while number:
        if number > 2:
            rows = two
            break
        number -= 1
    return int(rows[0])


def assigned_in_a_tuple(one: Any, two: Any, number: int) -> int:
    pair = one, two
    if number:
        pair = two, one
    return int(pair[0][0])


def chosen(one: Any, two: Any, number: int) -> int:
    rows = one if number else two
    return int(rows[0])


def number_of_two_kinds(one: Any, two: Any, number: int) -> float:
    x = 1
    if number:
        x = 0.5  # type: ignore[assignment]
    return x


def number_of_two_kinds_around(one: Any, two: Any, number: int) -> float:
    x = 1
    for _ in range(number):
        x = x * 0.5  # type: ignore[assignment]
    return x


def chosen_number_of_two_kinds(one: Any, two: Any, number: int) -> float:
    return 1 if number else 0.5


def results_of_two_kinds(one: Any, two: Any, number: int) -> float:
    if number:
        return 1
    return 0.5


def not_bound(one: Any, two: Any, number: int) -> int:
    while number:
        number -= rows[0]  # type: ignore[has-type] # noqa: F821
        rows = one
        number -= rows[1]
    return number


def same_array(one: Any, two: Any, number: int) -> int:
    rows = one
    if number:
        rows = one
    return int(rows[0])


def read_where_it_is_assigned(one: Any, two: Any, number: int) -> int:
    total = 0
    for place in range(number):
        if place % 2:
            rows = two[1:]
            total += rows[0]
        else:
            rows = one
            total += 10 * rows[0]
        rows = two
        total += 100 * rows[0]
    return total


def left_early(one: Any, two: Any, number: int) -> int:
    if number == 3:
        one = two
        return int(one[0])
    for place in range(number):
        if place == 2:
            rows = two
            return int(rows[0])
        number += 100 * one[0]
    return number


@pytest.fixture(scope="module")
def compiled() -> Any:
    return compile_module(__name__)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (assigned_in_one_branch, 5),
        (assigned_in_both_branches, 7),
        (bound_in_one_branch, 4),
        (assigned_at_the_end_of_a_loop, 4),
        (assigned_under_a_test, 2),
        (assigned_before_a_break, 8),
        (assigned_in_a_tuple, 5),
        (chosen, 2),
        (number_of_two_kinds, 5),
        (number_of_two_kinds_around, 4),
        (chosen_number_of_two_kinds, 2),
        (results_of_two_kinds, 4),
        (not_bound, 3),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_name_without_one_value_is_refused_with_its_line(
    function: Any, line: int, compiled: Any
) -> None:
    at = function.__code__.co_firstlineno - 1 + line
    with pytest.raises(NotImplementedError, match=rf"^{function.__name__}, line {at}: "):
        getattr(compiled, function.__name__)(ONES, TWOS, 2)


@pytest.mark.parametrize("function", [same_array, read_where_it_is_assigned, left_early])
@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_a_name_with_one_value_is_that(function: Any, number: int, compiled: Any) -> None:
    expected = function(ONES, TWOS, number)
    assert getattr(compiled, function.__name__)(ONES, TWOS, number) == expected

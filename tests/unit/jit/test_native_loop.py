"""Loops as machine code do what they do in Python, for every kind of argument that they take."""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cutrace.jit import loop
from cutrace.jit.codegen_cache import source_of
from cutrace.jit.loop import compile_module, interpret_module
from cutrace.jit.loop_expression import CHECKED, SYNTAX_LOCK
from cutrace.jit.structure import Struct
from cutrace.jit.value import MOST_STEP, ArrayKind, Fixed, kind_said, lower, prefetch, unroll
from cutrace.models.replay.stateful import cache_sim
from cutrace.models.replay.stateful.cache_sim import bank_of

FIRST, SECOND = 0, 1
SHIFTS, WIDE = (8, 4), 1 << 40


def divisions(numbers: Any, by: int, out: Any) -> None:
    for place in range(len(numbers)):
        out[place, 0] = numbers[place] // by
        out[place, 1] = numbers[place] % by
        out[place, 2] = numbers[place] // 8
        out[place, 3] = numbers[place] % 8


def widths(values: Any, sums: Any) -> int:
    total = 0
    for place in range(1, len(values), 2):
        total += values[place]
        sums[FIRST] += values[place]
    sums[SECOND] |= WIDE
    return total


def scaled(number: int, inverse: float, many: Any) -> tuple[int, int]:
    many[0] += inverse
    return int(number * inverse), int(many[0])


def fold(number: int) -> int:
    for shift in (16, 8, 4):
        number ^= number >> shift
    return ~number & 0xFF


def ordered(table: Any, pair: Any, which: int) -> tuple[int, int, int]:
    rows, (low, high) = table, pair[:2]
    least = greatest = rows[0, 0]
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            if not low <= rows[row, column] < high:
                continue
            least, greatest = min(least, rows[row, column]), max(greatest, rows[row, column])
    return least, greatest, pair[which]


def banks_of(lines: Any, ways: int) -> int:
    total = 0
    for line in range(ways):
        total += bank_of(lines[line])
    return total


def first_of(numbers: Any, wanted: int) -> int:
    part, found = numbers[1 : len(numbers) - 1], -1
    while found + 1 < len(part):
        found += 1
        if part[found] == wanted or (part[found] > 90 and not wanted):
            break
    return found if part[found] == wanted else -fold(found)


def weighted(numbers: Any, terms: int, powers: int) -> int:
    total = 0
    for n in unroll(terms):
        weight = 1
        for _ in unroll(powers):
            weight *= n + 1
        total += numbers[n] * weight
    return total


def is_inside(numbers: Any, place: int) -> bool:
    return bool(0 <= place < len(numbers) and numbers[place] != 0)


def element(numbers: Any, place: int) -> int:
    return int(numbers[place])


def sum_ahead(numbers: Any) -> int:
    total = 0
    for place in range(len(numbers)):
        prefetch(numbers[min(place + 2, len(numbers) - 1)])
        total += numbers[place]
    return total


class Point(NamedTuple):
    x: int
    y: int


class Track(NamedTuple):
    start: Point
    steps: NDArray[np.int64]
    scale: float


class Sum(Struct):
    total: int
    many: int


def step_on(point: Point, by: int) -> Point:
    return Point(point.x + by, point.x)


ORIGIN = Point(0, 0)


def walk(path: Track, sums: Sum) -> tuple[int, int, int]:
    """A named tuple that each iteration replaces, one of a module, and a structure."""
    point, last = path.start, ORIGIN
    for place in range(len(path.steps)):
        if path.steps[place] < 0:
            continue
        last = point
        point = step_on(point, path.steps[place])
        path.steps[place] = point.y
        sums.total += point.x
        sums.many = sums.many + 1
    return point.x, last.y, int(point.x * path.scale)


def unknown(numbers: Any) -> Any:
    return [number for number in numbers]


@pytest.fixture(scope="module")
def compiled() -> Any:
    return compile_module(__name__)


@pytest.mark.parametrize("by", [1, 3, 8, -3])
def test_division_rounds_down(compiled: Any, by: int) -> None:
    numbers = np.array([-9, -8, -1, 0, 1, 7, 8, 9, 1 << 40, -(1 << 40)])
    out = np.zeros((len(numbers), 4), np.int64)
    compiled.divisions(numbers, by, out)
    wanted = [[n // by, n % by, n // 8, n % 8] for n in numbers.tolist()]
    assert out.tolist() == wanted


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4", "i4", "i8"])
def test_elements_of_all_sizes_are_read_and_written(compiled: Any, dtype: str) -> None:
    values = np.array([1, 200, 3, 70_000, 5, -6]).astype(dtype)
    sums = np.zeros(2, np.int64)
    total = sum(map(int, values[1::2]))
    assert compiled.widths(values, sums) == total
    assert sums.tolist() == [total, WIDE]


def test_steps_of_arrays_that_do_not_lie_side_by_side_are_heeded(compiled: Any) -> None:
    table = np.arange(24, dtype=np.int32).reshape(4, 6)
    for part in (table, table[::2, 1:4], table.T, table[:, ::-1][:, :3]):
        assert compiled.ordered(part, (3, 20, 7), 2) == ordered(part, (3, 20, 7), 2)
    assert compiled.widths(table[:, 2], np.zeros((2, 2), np.int64)[:, 0]) == 8 + 20


@pytest.mark.parametrize("step", [1, 2, MOST_STEP, MOST_STEP + 1])
def test_a_loop_knows_the_step_of_a_column_of_narrow_rows(compiled: Any, step: int) -> None:
    column = np.arange(6 * step).reshape(6, step)[:, step - 1]
    assert compiled.sum_ahead(column) == sum_ahead(column) == int(column.sum())
    words: list[int] = []
    kind = lower(column, words, int)
    assert kind == ArrayKind("i8", 1, step == 1, step if 1 < step <= MOST_STEP else 0)
    assert words[1:] == ([6] if step <= MOST_STEP else [6, step])


def test_doubles_and_several_results(compiled: Any) -> None:
    many = np.array([2.5])
    assert compiled.scaled(10, 0.75, many) == (7, 3)
    assert many.tolist() == [3.25]


def test_random_numbers_fold_and_are_found_as_in_python(compiled: Any) -> None:
    drawn = random.Random(5)
    for _ in range(200):
        numbers = np.array(drawn.choices(range(100), k=drawn.randrange(3, 12)))
        wanted = drawn.randrange(100)
        assert compiled.fold(wanted << 20) == fold(wanted << 20)
        assert compiled.first_of(numbers, wanted) == first_of(numbers, wanted)
        place = drawn.randrange(-3, 14)
        assert compiled.is_inside(numbers, place) == is_inside(numbers, place)


READS = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
from cutrace.jit import loop
from cutrace.jit.loop import compile_module
compiled = compile_module("test_native_loop")
print(compiled.first_of(np.arange(8)[:{length}], 3), compiled.element(np.arange(8)[:5], {place}))
"""


@pytest.mark.parametrize(
    ("length", "place", "ends"),
    [(8, 4, True), (8, 5, False), (8, -1, False), (0, 4, False)],
)
def test_an_index_outside_of_its_array_ends_the_process_where_it_is_checked(
    length: int, place: int, ends: bool
) -> None:
    script = READS.format(folder=str(Path(__file__).parent), length=length, place=place)
    checked = os.environ | {CHECKED: "1"}
    done = subprocess.run([sys.executable, "-c", script], env=checked, capture_output=True)
    assert (done.returncode == 0) == ends
    assert done.stdout.split() == ([b"2", b"4"] if ends else [])


def test_what_a_loop_cannot_say_names_its_line(compiled: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"unknown, line \d+: \[number for number in"):
        compiled.unknown(np.zeros(3))


@pytest.mark.parametrize("loops", [compile_module(__name__), interpret_module(__name__)])
def test_named_tuples_and_structures_are_arguments_and_variables(loops: Any) -> None:
    """3, 5 and 6 beyond 1: points (4, 1), (9, 4), (15, 9); the step of -2 is left out."""
    sums, steps = Sum(), np.array([3, -2, 5, 6])
    sums.many = 10
    path = Track(Point(1, 7), steps, 0.5)
    assert loops.walk(path, sums) == (15, 4, 7)
    assert steps.tolist() == [1, -2, 4, 9]
    assert (sums.total, sums.many) == (4 + 9 + 15, 13)


@pytest.mark.parametrize("columns", [1, 2, 6, MOST_STEP, MOST_STEP + 1])
def test_a_column_of_one_row_takes_the_loop_of_longer_ones(columns: int) -> None:
    """NumPy calls it contiguous: that would compile a loop of its own."""
    one, many = (lower(np.zeros((rows, columns)).T[0], [], int) for rows in (1, 3))
    assert (one == many) == (columns <= MOST_STEP)


@pytest.mark.parametrize("powers", [0, 2])
def test_unrolled_loops_do_the_same_and_llvm_unrolls_them(
    compiled: Any, powers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = np.array([3, 1, 4, 1, 5], np.int64)
    expected = sum(number * place**powers for place, number in enumerate([3, 1, 4, 1, 5], 1))
    assert compiled.weighted(numbers, Fixed(5), Fixed(powers)) == expected
    assert weighted(numbers, 5, powers) == expected
    assert capfd.readouterr().err == ""  # LLVM says there if it cannot


def test_a_loop_that_is_not_compiled_gets_integers_that_do_not_wrap() -> None:
    loops, narrow = interpret_module(__name__), np.array([1, 200, 3, 250], np.uint8)
    sums = np.zeros(2, np.int64)
    assert loops.widths(narrow, sums) == 450
    assert sums.tolist() == [450, WIDE]


@pytest.mark.parametrize("ways", [3, Fixed(3), Fixed(2), Fixed(0)])
def test_a_loop_calls_what_its_module_imports_and_knows_fixed_numbers(ways: int) -> None:
    """Lines 1, 2 and 4 lie in banks 1, 2 and 1: all bits of the number, two at a time."""
    compiled = compile_module(__name__)
    lines = np.array([1, 2, 4])
    assert compiled.banks_of(lines, ways) == banks_of(lines.tolist(), ways) == [0, 1, 3, 4][ways]


def test_a_translated_loop_is_kept_for_its_sources_and_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kinds = ("int", "float", ArrayKind("f8", 1, True))
    made = loop._text(scaled, kinds)
    monkeypatch.setattr(loop, "loop_text", None)
    assert loop._text(scaled, kinds) == made
    assert Path(cache_sim.__file__).read_bytes() in source_of(__name__)


def test_threads_take_turns_at_what_was_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a kept loop's kinds makes a syntax tree, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kinds = ("int", "float", ArrayKind("f8", 1, True))
    made = loop._text(scaled, kinds)
    with ThreadPoolExecutor(1) as pool:
        with SYNTAX_LOCK:
            other = pool.submit(loop._text, scaled, kinds)
            assert not wait([other], 0.2).done
        assert other.result() == made


@pytest.mark.parametrize(
    "said",
    [
        NDArray[np.int16],
        np.ndarray[tuple[Any, ...], np.dtype[np.int16]],  # as NumPy says it before 2.5
        Sequence[np.int16],  # and from then on: the element alone
    ],
)
def test_an_annotation_says_what_the_elements_of_an_array_are(said: Any) -> None:
    assert kind_said(said) == ArrayKind("i2", 1, True, bounded=False)

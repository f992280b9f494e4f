"""Compiled functions of one name: a process has one table of them for all who compile."""

import ctypes
from collections.abc import Callable

from cutrace.jit.machine_code import compile_assembly, symbol

RETURNS = "define i64 @f() {{\n  ret i64 {}\n}}\n"


def called(address: int) -> int:
    made: Callable[[], int] = ctypes.CFUNCTYPE(ctypes.c_int64)(address)
    return made()


def test_texts_that_define_one_name_do_not_reach_each_other() -> None:
    first, second = RETURNS.format(1), RETURNS.format(2)
    places = [compile_assembly(text)("f") for text in (first, second, first)]
    assert [called(place) for place in places] == [1, 2, 1]
    assert places[0] == places[2]


def test_a_text_calls_the_function_that_it_means_and_not_a_later_one_of_the_name() -> None:
    meant = RETURNS.format(3)
    compile_assembly(meant)
    compile_assembly(RETURNS.format(4))
    name = symbol("f", meant)
    caller = (
        f"declare i64 @{name}()\ndefine i64 @g() {{\n  %r = call i64 @{name}()\n  ret i64 %r\n}}\n"
    )
    assert called(compile_assembly(caller)("g")) == 3


def test_what_a_text_keeps_to_itself_keeps_its_name() -> None:
    text = (
        "define internal i64 @own() {\n  ret i64 5\n}\n"
        "define i64 @h() {\n  %r = call i64 @own()\n  ret i64 %r\n}\n"
    )
    assert called(compile_assembly(text)("h")) == 5

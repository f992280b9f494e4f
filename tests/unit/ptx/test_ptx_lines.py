"""Source lines of instructions: `.file`, `.loc`, `inlined_at`."""

from ptx.ptx_text import module_of

from cutrace.tracer.ptx.kernel import Location


def locations(body: str, files: str) -> list[Location | None]:
    """Return where each instruction of an entry comes from; `.file` follows, as compilers do."""
    entry = module_of(f".entry k() {{ {body} ret; }}\n{files}").functions["k"]
    return [instruction.location for instruction in entry.instructions]


def test_a_line_holds_until_the_next_one() -> None:
    assert locations(".loc 1 10 5\nmembar.gl; membar.gl;\n.loc 1 12 0\n", '.file 1 "a.cu"') == [
        Location("a.cu", 10, 5),
        Location("a.cu", 10, 5),
        Location("a.cu", 12, 0),
    ]


def test_before_the_first_line_and_at_line_0_there_is_none() -> None:
    assert locations("membar.gl;\n.loc 1 0 3\n", '.file 1 "a.cu"') == [None, None]


def test_a_line_does_not_reach_into_the_next_function() -> None:
    text = '.entry a() { .loc 1 7 1\nret; }\n.entry b() { ret; }\n.file 1 "a.cu"'
    assert module_of(text).functions["b"].instructions[0].location is None


def test_inlined_at_names_the_places_from_the_inside_out() -> None:
    body = """
    .loc 1 20 7
    membar.gl;
    .loc 2 14 1, function_name $L__info_string0, inlined_at 1 20 7
    membar.gl;
    .loc 2 8 3, function_name $L__info_string0+12, inlined_at 2 14 1
    """
    kernel = Location("a.cu", 20, 7)
    middle = Location("b.h", 14, 1)
    assert locations(body, '.file 1 "a.cu"\n.file 2 "b.h"') == [
        kernel,
        Location("b.h", 14, 1, (kernel,)),
        Location("b.h", 8, 3, (middle, kernel)),
    ]


def test_the_same_place_inlined_twice_keeps_its_own_chain() -> None:
    body = """
    .loc 2 3 1, function_name $L__info_string0, inlined_at 1 20 7
    membar.gl;
    .loc 2 3 1, function_name $L__info_string0, inlined_at 1 30 7
    """
    found = locations(body, '.file 1 "a.cu"\n.file 2 "b.h"')
    assert [place.inlined_at[0].line for place in found if place] == [20, 30]


def test_forms_of_file() -> None:
    files = '.file 1 "/tmp/a.cu", 1700000000, 1234\n.file 2 "/src" "b.cu"'
    assert locations(".loc 1 1 1\nmembar.gl;\n.loc 2 2 2\n", files) == [
        Location("/tmp/a.cu", 1, 1),
        Location("/src/b.cu", 2, 2),
    ]


def test_a_file_that_is_not_named_is_empty() -> None:
    assert locations(".loc 9 4 1\n", "") == [Location("", 4, 1)]


def test_ptx_lines_are_counted_from_1() -> None:
    entry = module_of(".entry k()\n{\n// one\n/* two\n three */ ret;\n}").functions["k"]
    assert entry.instructions[0].ptx_line == 8  # three lines of directives, then the fifth

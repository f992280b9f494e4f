"""The position of an access beside the nearest array, as messages name it."""

import pytest

from cutrace.traces.out_of_bounds import gap_text, verb_of


@pytest.mark.parametrize(
    ("address", "width", "text"),
    [
        (132, 4, "just past the end of"),  # the array is 100 to 131
        (133, 1, "1 byte past the end of"),
        (136, 4, "4 bytes past the end of"),
        (128, 8, "4 bytes beyond the end of"),
        (131, 2, "1 byte beyond the end of"),
        (99, 1, "1 byte before"),
        (96, 4, "4 bytes before"),
    ],
)
def test_a_gap_is_in_bytes_but_for_none(address: int, width: int, text: str) -> None:
    assert gap_text(100, 32, address, width) == text


@pytest.mark.parametrize(
    ("text", "space", "verb"),
    [
        ("@!%p1 ld.global.f32 %f1, [%rd1];", "global", "reads"),
        ("red.global.add.u32 [%rd1], 1;", "global", "updates"),
        ("/*0080*/ @!P0 LDG.E R2, [R2.64]", "global", "reads"),
        ("/*0140*/ LDS.128 R4, [R12]", "shared", "reads"),
        ("/*0380*/ STG.E [R2.64], R5", "global", "writes"),
        ("/*00a0*/ STL [R1], R8", "local", "writes"),
        ("/*0160*/ RED.E.ADD.STRONG.GPU [R2.64], R8", "global", "updates"),
        ("/*0090*/ @P1 LDGSTS.E.128 [R5], [R2.64]", "global", "reads"),
        ("/*0090*/ @P1 LDGSTS.E.128 [R5], [R2.64]", "shared", "writes"),
    ],
)
def test_an_instruction_says_what_it_does_to_memory(text: str, space: str, verb: str) -> None:
    assert verb_of(text, space) == verb

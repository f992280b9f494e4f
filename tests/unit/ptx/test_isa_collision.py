"""What becomes of atomics whose lanes share an address, by their code: as an H200 has them."""

import pytest
from ptx.ptx_text import kernel_around

from cutrace.tracer.isa.table import instruction_table

HEAD = [
    "ld.param.u64 %rd1, [a]",
    "ld.param.u64 %rd2, [a]",
    "mov.u32 %r1, %ctaid.x",
    "mov.u32 %r2, %tid.x",
    "mad.lo.s32 %r3, %r1, 256, %r2",
    "mul.wide.u32 %rd3, %r1, 4",
    "add.s64 %rd4, %rd1, %rd3",  # one for the block
    "mul.wide.u32 %rd5, %r3, 4",
    "add.s64 %rd6, %rd1, %rd5",  # one for each lane
    "ld.global.u32 %r4, [%rd4]",
    "mul.wide.u32 %rd7, %r4, 4",
    "add.s64 %rd8, %rd1, %rd7",  # loaded by the whole warp from one place
    "ld.global.u32 %r5, [%rd6]",
    "mul.wide.u32 %rd9, %r5, 4",
    "add.s64 %rd10, %rd1, %rd9",  # loaded by each lane
]


def collision(text: str, read: bool = False, head: list[str] = HEAD) -> str:
    """What becomes of the last instruction of a kernel."""
    after = "st.global.u32 [%rd1], %r9;" if read else ""
    body = "".join(f"{line};\n" for line in [*head, text])
    kernel = kernel_around(f"{body}{after} ret;", ".shared .u32 counter;")
    row = next(i for i in instruction_table(kernel).to_pylist() if i["text"] == f"{text};")
    found: str = row["collision"]
    return found


@pytest.mark.parametrize("address", ["%rd1", "%rd4", "%rd8", "%rd4+8"])
@pytest.mark.parametrize("operation", ["add.u32", "max.s32", "or.b32", "xor.b32", "min.u32"])
def test_one_address_of_the_whole_warp_leaves_one_lane(address: str, operation: str) -> None:
    assert collision(f"atom.global.{operation} %r9, [{address}], %r3") == "elected"


@pytest.mark.parametrize("address", ["%rd6", "%rd10", "%rd6+-4"])
def test_addresses_of_their_own_are_served_in_turn(address: str) -> None:
    assert collision(f"red.global.add.u32 [{address}], 1") == "serial"


@pytest.mark.parametrize(
    "text",
    [
        "red.global.add.u64 [%rd1], %rd5",
        "red.global.add.f32 [%rd1], 0f3F800000",
        "red.global.inc.u32 [%rd1], 100",
        "atom.global.exch.b32 %r9, [%rd1], %r3",
    ],
)
def test_other_types_and_operations_are_not_combined(text: str) -> None:
    assert collision(text) == "serial"


def test_a_result_that_is_read_leaves_one_lane_of_additions_only() -> None:
    assert collision("atom.global.add.u32 %r9, [%rd1], %r3", read=True) == "elected"
    assert collision("atom.global.max.u32 %r9, [%rd1], %r3", read=True) == "serial"


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        ("atom.shared.add.u32 %r9, [%rd6], 1", False, "counted"),
        ("red.shared.add.u32 [%rd6], 1", False, "counted"),
        ("atom.shared.add.u32 %r9, [%rd6], 1", True, "serial"),
        ("atom.shared.add.u32 %r9, [%rd6], 2", False, "serial"),
        ("atom.shared.add.u32 %r9, [%rd6], -1", False, "serial"),
        ("atom.shared.inc.u32 %r9, [%rd6], 1", False, "serial"),
        ("atom.shared.inc.u32 %r9, [%rd6], -1", False, "counted"),
        ("red.shared.inc.u32 [%rd6], 4294967295", False, "counted"),
        ("atom.shared.add.u32 %r9, [%rd1], %r3", False, "elected"),
        ("atom.shared.add.u32 %r9, [counter], 2", False, "elected"),
    ],
)
def test_adding_one_in_shared_memory_is_counted(text: str, read: bool, expected: str) -> None:
    assert collision(text, read) == expected


def test_compare_and_swap_is_compared_wherever_it_is() -> None:
    for address in ("%rd1", "%rd6"):
        assert collision(f"atom.global.cas.b32 %r9, [{address}], 0, %r3") == "compared"


def test_a_value_chosen_by_a_predicate_of_the_lane_is_its_own() -> None:
    head = [*HEAD, "setp.lt.u32 %p1, %r2, 7", "@%p1 mov.u64 %rd11, %rd1"]
    assert collision("red.global.add.u32 [%rd11], 1", head=head) == "serial"
    head[-2] = "setp.lt.u32 %p1, %r1, 7"
    assert collision("red.global.add.u32 [%rd11], 1", head=head) == "elected"


def test_a_value_that_a_shuffle_or_an_atomic_gave_is_the_lanes_own() -> None:
    for text in ("shfl.sync.idx.b32 %r8, %r1, 0, 31, -1", "atom.global.add.u32 %r8, [%rd1], 1"):
        head = [*HEAD, text, "mul.wide.u32 %rd11, %r8, 4", "add.s64 %rd12, %rd1, %rd11"]
        assert collision("red.global.add.u32 [%rd12], 1", head=head) == "serial"


def test_other_instructions_have_no_collisions() -> None:
    assert collision("ld.global.u32 %r9, [%rd1]") == ""


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("red.shared.add.f32 [%rd6], 0f3F800000", "spun"),
        ("red.shared.add.f32 [%rd1], 0f3F800000", "spun"),  # one address: nobody elects
        ("red.add.f32 [%rd6], 0f3F800000", "spun"),  # where its address is shared
        ("red.shared.add.f64 [%rd6], 0d3FF0000000000000", "spun"),
        ("red.shared.add.u64 [%rd6], %rd5", "spun"),
        ("red.shared.xor.b64 [%rd6], %rd5", "spun"),
        ("red.shared.min.s64 [%rd6], %rd5", "spun"),
        ("red.shared.add.noftz.f16x2 [%rd6], %r3", "spun"),
        ("red.global.add.noftz.f16x2 [%rd6], %r3", "serial"),
        ("red.global.add.noftz.f16 [%rd6], %h1", "swapped"),
        ("red.shared.add.noftz.bf16 [%rd6], %h1", "swapped"),
        ("atom.shared.exch.b64 %rd9, [%rd6], %rd5", "serial"),
        ("atom.shared.cas.b64 %rd9, [%rd6], %rd5, %rd5", "compared"),
        ("red.shared.min.s32 [%rd6], %r3", "serial"),
    ],
)
def test_what_the_chip_has_no_atomic_for_is_a_loop(instruction: str, expected: str) -> None:
    assert collision(instruction) == expected

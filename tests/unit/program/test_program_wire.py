"""The messages between a program and its recorder."""

import pytest

from cutrace.tracer.program.wire import fact_names, kinds, pack, unpack


def test_the_messages_are_those_of_the_library_s_header() -> None:
    allocate = next(kind for kind in kinds().values() if kind.name == "ALLOCATE")
    assert (allocate.question, allocate.answer) == ("QQssQsI", "Q")
    assert len({kind.name for kind in kinds().values()}) == len(kinds())
    assert fact_names()[:3] == ("major", "minor", "processors")


def test_fields_lie_side_by_side_and_bytes_have_their_number_before_them() -> None:
    data = pack("IsQ", [7, b"abc", 1 << 40])
    assert data == b"\7\0\0\0" + b"\3\0\0\0abc" + (1 << 40).to_bytes(8, "little")
    assert unpack("IsQ", data) == [7, b"abc", 1 << 40]


@pytest.mark.parametrize("data", [b"", b"\7\0\0\0", pack("IsQ", [7, b"abc", 1]) + b"x"])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected the fields IsQ"):
        unpack("IsQ", data)

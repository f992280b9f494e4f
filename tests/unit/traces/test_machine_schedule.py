"""Schedules of machine code as a manifest has them."""

import pytest

from cutrace.traces.machine_schedule import NO_SCOREBOARD, Scheduled, pack_schedule, unpack_schedule

CODE = (
    Scheduled(3, 0x181, 1, 5, 0, 0b100001, 0, -1),
    Scheduled(70_000, 0x1FF, 15, NO_SCOREBOARD, NO_SCOREBOARD, 63, 1, 90_000),
)


def test_a_schedule_is_unpacked_as_it_was_packed() -> None:
    assert unpack_schedule(pack_schedule(CODE)) == CODE
    assert unpack_schedule(pack_schedule(())) == ()


@pytest.mark.parametrize("text", ["?", "QUJD", pack_schedule(CODE)[:-8], "eJwDAAAAAAE=A"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no schedule of machine code"):
        unpack_schedule(text)

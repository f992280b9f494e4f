from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.array import DeviceArray, allocate_array
from cutrace.tracer.session.recording import Recording
from cutrace.traces.schema import Array, Space
from cutrace.traces.writer import TraceWriter


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(TraceWriter(tmp_path / "t.cutrace"), lambda text: None)


def make(
    recording: Recording, *shape: int, dtype: str = "i4", pitched: bool = False
) -> DeviceArray:
    return allocate_array(recording, shape, dtype, "d", is_pitched=pitched)


def test_what_is_copied_to_the_device_comes_back(recording: Recording) -> None:
    d = make(recording, 3, 5)
    values = np.arange(15, dtype=np.int32).reshape(3, 5)
    d.copy_to_device(values)
    assert np.array_equal(d.copy_to_host(), values)


def test_a_copy_on_the_host_is_its_own(recording: Recording) -> None:
    d = make(recording, 4)
    d.copy_to_host()[:] = 7
    assert d.copy_to_host().tolist() == [0, 0, 0, 0]


def test_arrays_survive_the_allocation_of_others(recording: Recording) -> None:
    first = make(recording, 4)
    first.fill(9)
    make(recording, 1 << 20)
    assert first.copy_to_host().tolist() == [9, 9, 9, 9]


def test_rows_of_60_floats_are_padded_from_240_to_256_bytes(recording: Recording) -> None:
    # SEEDS 000.9: 100 rows of 60 floats.
    d = make(recording, 100, 60, dtype="f4", pitched=True)
    assert (d.pitch, d.nbytes) == (256, 24000)
    assert recording.arrays == [Array("d", Space.GLOBAL, 0, 25600, 4, (100, 60), 256)]


def test_a_pitched_array_is_copied_without_its_padding(recording: Recording) -> None:
    d = make(recording, 2, 3, 5, dtype="f8", pitched=True)
    values = np.arange(30.0).reshape(2, 3, 5)
    d.copy_to_device(values)
    back = d.copy_to_host()
    assert back.flags.c_contiguous
    assert np.array_equal(back, values)


def test_a_row_of_256_bytes_needs_no_padding(recording: Recording) -> None:
    assert make(recording, 2, 64, pitched=True).pitch == 256
    assert make(recording, 2, 65, pitched=True).pitch == 512


def test_an_array_without_pitch_has_its_row_as_pitch(recording: Recording) -> None:
    assert make(recording, 2, 60).pitch == 240
    assert recording.arrays[0].pitch == 0


def test_arrays_start_at_multiples_of_256_bytes(recording: Recording) -> None:
    addresses = [make(recording, 60).address for _ in range(4)]
    assert [address % 256 for address in addresses] == [0, 0, 0, 0]


def test_a_name_used_twice_gets_a_number(recording: Recording) -> None:
    assert [make(recording, 1).name for _ in range(3)] == ["d", "d (2)", "d (3)"]


def test_arrays_without_a_name_are_counted(recording: Recording) -> None:
    names = [allocate_array(recording, 1, "i4", None, is_pitched=False).name for _ in range(2)]
    assert names == ["array0", "array1"]


def test_fill_sets_every_element(recording: Recording) -> None:
    d = make(recording, 2, 2, dtype="f4")
    d.fill(1.5)
    assert d.copy_to_host().tolist() == [[1.5, 1.5], [1.5, 1.5]]


def test_a_value_that_does_not_fit_is_not_filled_in(recording: Recording) -> None:
    with pytest.raises(CutraceError, match="`d` is uint8: it cannot hold 256"):
        make(recording, 2, dtype="u1").fill(256)
    with pytest.raises(CutraceError, match=r"`d \(2\)` is int32: it cannot hold 1\.5"):
        make(recording, 2, dtype="i4").fill(1.5)


def test_one_array_is_copied_to_another_on_the_device(recording: Recording) -> None:
    first, second = make(recording, 4), make(recording, 4)
    first.copy_to_device([1, 2, 3, 4])
    second.copy_to_device(first)
    assert second.copy_to_host().tolist() == [1, 2, 3, 4]


def test_big_endian_values_are_turned_round(recording: Recording) -> None:
    d = make(recording, 2)
    d.copy_to_device(np.array([1, 2], ">i4"))
    assert d.copy_to_host().tolist() == [1, 2]


@pytest.mark.parametrize(
    "values", [np.zeros(4, np.int32), np.zeros((2, 2), np.int64), np.zeros((2, 2), np.float32)]
)
def test_another_shape_or_type_is_not_copied(
    recording: Recording, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    with pytest.raises(CutraceError, match=r"`d` is int32 of shape \(2, 2\), got "):
        make(recording, 2, 2).copy_to_device(values)


@pytest.mark.parametrize("shape", [0, -1, (), (4, 0), (2.5,), "4"])
def test_an_array_has_at_least_one_element(recording: Recording, shape: int) -> None:
    with pytest.raises(CutraceError, match="expected sizes of 1 or more"):
        allocate_array(recording, shape, "i4", "d", is_pitched=False)


def test_an_array_holds_no_python_objects(recording: Recording) -> None:
    with pytest.raises(CutraceError, match="array `d` of object: expected numbers"):
        make(recording, 4, dtype="O")


def test_a_view_reads_the_same_bytes(recording: Recording) -> None:
    d = make(recording, 2)
    d.copy_to_device([0x3F800000, 0])
    assert d.view(np.float32).copy_to_host().tolist() == [1.0, 0.0]


def test_a_view_keeps_the_size_of_the_elements(recording: Recording) -> None:
    with pytest.raises(CutraceError, match="cannot be viewed as int64, of 8 bytes"):
        make(recording, 2).view(np.int64)


def test_nothing_is_copied_once_the_session_is_closed(recording: Recording) -> None:
    d = make(recording, 2)
    recording.is_open = False
    with pytest.raises(CutraceError, match="the session is closed"):
        d.copy_to_host()

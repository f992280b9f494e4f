from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.source.launch_line import DTYPES, check_initial, initial_values

HERE = Path()


def test_the_eleven_types_have_the_bits_in_their_names() -> None:
    assert {name: dtype.itemsize * 8 for name, dtype in DTYPES.items()} == {
        **{"i8": 8, "i16": 16, "i32": 32, "i64": 64},
        **{"u8": 8, "u16": 16, "u32": 32, "u64": 64},
        **{"f16": 16, "f32": 32, "f64": 64},
    }


def test_arange_counts_in_row_major_order() -> None:
    values = initial_values("arange", (2, 3), DTYPES["f32"], HERE)
    assert values.dtype == np.float32
    assert values.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_arange_goes_round_where_the_type_ends() -> None:
    values = initial_values("arange", (257,), DTYPES["u8"], HERE)
    assert values[255:].tolist() == [255, 0]


def test_random_integers_are_indices_of_an_array_of_that_many() -> None:
    values = initial_values("random:1", (1000,), DTYPES["i32"], HERE)
    assert values.min() >= 0
    assert values.max() <= 999
    assert len(np.unique(values)) > 500


def test_random_bytes_reach_the_end_of_the_type_and_no_further() -> None:
    values = initial_values("random:1", (10000,), DTYPES["i8"], HERE)
    assert (values.min(), values.max()) == (0, 127)


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_random_floats_are_multiples_of_one_256th_below_one(name: str) -> None:
    values = initial_values("random:3", (10000,), DTYPES[name], HERE).astype(np.float64)
    assert np.array_equal(values * 256, np.rint(values * 256))
    assert (values.min(), values.max()) == (0, 255 / 256)


def test_a_seed_gives_the_same_numbers_everywhere() -> None:
    # The first words of PCG64 seeded with 1, whose stream NumPy promises to keep, by its formula.
    words = [int(word) for word in np.random.PCG64(1).random_raw(3)]
    values = initial_values("random:1", (3,), DTYPES["f32"], HERE)
    assert values.tolist() == [(word >> 56) / 256 for word in words]
    assert values.tolist() == [131 / 256, 243 / 256, 36 / 256]


def test_two_seeds_differ() -> None:
    first, second = (initial_values(f"random:{n}", (64,), DTYPES["u32"], HERE) for n in (1, 2))
    assert not np.array_equal(first, second)


def test_a_file_is_read_from_the_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[3, 1], [2, 0]], np.int16))
    assert initial_values("in.npy", (2, 2), DTYPES["i16"], tmp_path).tolist() == [[3, 1], [2, 0]]


def test_a_file_of_another_type_or_shape_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.zeros(4, np.float64))
    with pytest.raises(CutraceError, match=r"holds float64 of shape \(4,\), expected float32 of"):
        initial_values("in.npy", (4,), DTYPES["f32"], tmp_path)


def test_a_mistyped_file_names_the_nearest(tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", np.zeros(4))
    with pytest.raises(CutraceError, match=r"no such file; nearest: image.npy"):
        initial_values("imag.npy", (4,), DTYPES["f64"], tmp_path)


def test_a_file_of_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(CutraceError, match=r"expected an array saved by numpy.save"):
        initial_values("in.npy", (1,), DTYPES["f64"], tmp_path)


@pytest.mark.parametrize("good", ["", "zeros", "arange", "random:0", "random:12", "a/b.npy"])
def test_what_an_array_holds_at_first_is_one_of_four_things(good: str) -> None:
    assert check_initial(good) == ""


@pytest.mark.parametrize("bad", ["one", "random", "random:x", "random:-1", "file.npz"])
def test_anything_else_is_explained(bad: str) -> None:
    assert f"got `{bad}`" in check_initial(bad)

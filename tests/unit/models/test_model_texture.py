"""Texture footprints: texels and sectors that the samples of one warp touch."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hand_trace import instruction, instruction_table, launch
from numpy.typing import ArrayLike
from warps import BASE, FULL

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.replay import replay
from cutrace.traces.reader import LaunchTrace, read_trace
from cutrace.traces.schema import Array, Space, Texture
from cutrace.traces.writer import TraceWriter

FETCH, SAMPLE, GATHER = "tex.1d.v4.f32.s32", "tex.2d.v4.f32.f32", "tld4.r.2d.v4.f32.f32"
LANE = np.arange(32)
QUADS = 8  # of a warp: four threads that are served together


def texture(*extent: int, **fields: object) -> Texture:
    """A texture of floats, clamped, read at points, in texels."""
    plain: dict[str, object] = {
        "name": "t",
        "format": "f32",
        "extent": extent,
        "address_mode": ("clamp",) * len(extent),
        "filter_mode": "point",
        "normalized_coords": False,
        "read_mode": "element",
    }
    return Texture(**(plain | fields))  # type: ignore[arg-type]


def write(
    folder: Path,
    described: Texture,
    x: ArrayLike,
    y: ArrayLike = 0,
    z: ArrayLike = 0,
    layer: ArrayLike = 0,
    mnemonic: str = SAMPLE,
    active: int = FULL,
    arrays: tuple[Array, ...] = (),
) -> LaunchTrace:
    """A trace of one warp that samples at these lower corners."""
    corner = np.zeros((1, 32, 4), np.int32)
    for place, values in enumerate((x, y, z, layer)):
        corner[0, :, place] = np.asarray(values)
    path = folder / "a.cutrace"
    told = launch(textures=(described,), arrays=arrays)
    with TraceWriter(path) as trace, trace.launch(told) as rows:
        rows.instructions(instruction_table([instruction(0, mnemonic, bytes=16)]))
        rows.texels([0], [0], [0], [0], [0], [active], corner)
    return read_trace(path).launches[0]


def count(
    trace: LaunchTrace, device: str = "h200", settings: Mapping[str, object] | None = None
) -> dict[str, int]:
    """The counters of the only sample, without their prefix."""
    counts = _counts(trace, device, settings)
    names = [name for name in counts.columns if name.startswith("texture_load_")]
    sums = counts.select(pl.col(names).sum()).row(0, named=True)
    return {name.removeprefix("texture_load_"): value for name, value in sums.items()}


def named(trace: LaunchTrace) -> list[str]:
    """What the only sample is attributed to."""
    counts = _counts(trace, "h200", None)
    return counts.filter(pl.col("texture_load_requests") > 0)["array"].to_list()


def _counts(trace: LaunchTrace, device: str, settings: Mapping[str, object] | None) -> pl.DataFrame:
    return replay(trace, [load_device(device, settings)])[0].counts


def test_a_warp_that_fetches_in_order_touches_a_sector_for_each_quad(tmp_path: Path) -> None:
    found = count(write(tmp_path, texture(64), LANE, mnemonic=FETCH))
    assert found["requests"] == 1
    assert found["texels"] == 32
    assert found["bytes_asked"] == found["bytes_distinct"] == 32 * 4
    assert found["sectors"] == 2 * QUADS // 2  # a copy has 4 floats of a row in a sector


def test_fetches_of_words_are_served_eight_lanes_at_a_time(tmp_path: Path) -> None:
    under = Array("line", Space.GLOBAL, BASE, 256, 4)
    trace = write(tmp_path, texture(64, array="line"), LANE, mnemonic=FETCH, arrays=(under,))
    found = count(trace)
    assert (found["split_requests"], found["sectors"]) == (32 // 8, 32 * 4 // 32)
    found = count(trace, settings={"sampler.fetch_lanes": [4, 4, 4]})
    assert (found["split_requests"], found["sectors"]) == (QUADS, QUADS)


@pytest.mark.parametrize(("extent", "taps"), [((64,), 2), ((64, 8), 4), ((64, 8, 8), 8)])
def test_a_linear_filter_reads_two_texels_in_each_dimension(
    tmp_path: Path, extent: tuple[int, ...], taps: int
) -> None:
    described = texture(*extent, filter_mode="linear")
    found = count(write(tmp_path, described, 5, 3, 2, active=1))
    assert found["texels"] == taps
    assert found["bytes_asked"] == 4 * taps


def test_a_fetch_by_number_is_never_filtered(tmp_path: Path) -> None:
    described = texture(64, filter_mode="linear")
    assert count(write(tmp_path, described, 5, mnemonic=FETCH, active=1))["texels"] == 1


def test_a_gather_reads_four_texels_also_at_points(tmp_path: Path) -> None:
    found = count(write(tmp_path, texture(64, 64), 5, 3, mnemonic=GATHER, active=1))
    assert found["texels"] == 4


@pytest.mark.parametrize(
    ("mode", "normalized", "corner", "texels"),
    [
        ("clamp", False, -1, 1),  # -1 and 0 are both 0
        ("clamp", False, -9, 1),
        ("border", False, -1, 1),  # fetched as if clamped, though the border is what is used
        ("border", False, -9, 1),
        ("wrap", True, -1, 2),  # 63 and 0
        ("mirror", True, -1, 1),  # 0 and 0
        ("mirror", True, 63, 1),  # 63 and 63
        ("wrap", False, 63, 1),  # wrap is for normalised coordinates; otherwise it clamps
    ],
)
def test_address_modes_fold_every_tap(
    tmp_path: Path, mode: str, normalized: bool, corner: int, texels: int
) -> None:
    described = texture(
        64, address_mode=(mode,), filter_mode="linear", normalized_coords=normalized
    )
    assert count(write(tmp_path, described, corner, active=1))["texels"] == texels


def test_a_column_of_a_tiled_image_has_two_rows_in_a_sector(tmp_path: Path) -> None:
    trace = write(tmp_path, texture(64, 64), 0, LANE, active=0xF)
    assert count(trace)["sectors"] == 4 // 2
    assert count(trace, "8800gtx")["sectors"] == 4  # 64 bytes of a row lie together
    flat = {"sampler.tile": "xxxxxxyyy"}
    assert count(trace, settings=flat)["sectors"] == 4


def test_a_square_of_texels_is_one_sector_of_a_tiled_image(tmp_path: Path) -> None:
    trace = write(tmp_path, texture(64, 64), LANE % 2, LANE // 2 % 2, active=0xF)
    assert count(trace)["sectors"] == 1


def test_each_layer_lies_for_itself(tmp_path: Path) -> None:
    trace = write(tmp_path, texture(64, layers=4), 0, layer=LANE % 4, active=0xF)
    assert (count(trace)["sectors"], count(trace)["texels"]) == (4, 4)


def test_texels_of_16_bytes_are_two_a_sector(tmp_path: Path) -> None:
    under = Array("wide", Space.GLOBAL, BASE, 64 * 16, 16)
    described = texture(64, format="f32x4", array="wide")
    trace = write(tmp_path, described, LANE, mnemonic=FETCH, arrays=(under,))
    assert count(trace)["sectors"] == 32 // 2
    assert count(trace)["split_requests"] == 32 // 4


def test_a_texture_over_an_array_has_plain_rows_and_the_arrays_name(tmp_path: Path) -> None:
    under = Array("image", Space.GLOBAL, BASE, 64 * 256, 4, (64, 64), 256)
    described = texture(64, 64, array="image")
    trace = write(tmp_path, described, 0, LANE, active=0xF, arrays=(under,))
    assert count(trace)["sectors"] == 4
    assert named(trace) == ["image"]


def test_a_texture_of_its_own_is_named_in_its_place(tmp_path: Path) -> None:
    assert named(write(tmp_path, texture(64), LANE, mnemonic=FETCH)) == ["t"]


def test_beyond_linear_memory_there_is_nothing(tmp_path: Path) -> None:
    under = Array("line", Space.GLOBAL, BASE, 256, 4)
    trace = write(
        tmp_path, texture(64, array="line"), LANE + 62, mnemonic=FETCH, active=7, arrays=(under,)
    )
    found = count(trace)
    assert (found["requests"], found["texels"], found["sectors"]) == (1, 2, 1)


def test_threads_that_sample_nothing_ask_nothing(tmp_path: Path) -> None:
    trace = write(tmp_path, texture(64), LANE, mnemonic=FETCH, active=0xFFFF)
    assert count(trace, "h200")["split_requests"] == 16 // 8
    assert count(trace, "8800gtx")["split_requests"] == QUADS // 2


def test_a_tile_of_other_letters_is_refused() -> None:
    with pytest.raises(CutraceError, match="tile = 'xxz'; expected letters x and y"):
        load_device("h200", {"sampler.tile": "xxz"})

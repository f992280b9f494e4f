"""Texture requests and sectors are those that Nsight Compute counted on an H200."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cases.edge_case import HIGH, WIDE, Edge, edge_cases
from cases.footprint_case import MASKS, Case, footprint_cases
from hand_trace import instruction, instruction_table, launch
from numpy.typing import NDArray
from textures import sampled, texture_of
from warps import BASE

from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.replay import replay
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Array, Space, Texture
from cutrace.traces.writer import TraceWriter

KEPT = Path(__file__).parent / "counters" / "h200_footprints.json"
EDGES: dict[str, list[int]] = json.loads(KEPT.with_name("h200_edges.json").read_text())
BESIDE = {"plane border linear x4 outside 0", "plane clamp linear x4 outside 0"}
"""Cases with two sectors more here: of texels that lanes share where all are clamped to an edge."""
COUNTED: dict[str, list[int]] = json.loads(KEPT.read_text())
CASES = {case.name: case for case in footprint_cases()}
FORMATS = {"f4": "f32", "u1": "u8", "u2": "u16"}


def described(case: Case) -> Texture:
    """The texture of a case, as a trace keeps it."""
    return Texture(
        "t",
        FORMATS[case.element] + (f"x{case.channels}" if case.channels > 1 else ""),
        case.extent,
        ("clamp",) * len(case.extent),
        "linear" if case.linear else "point",
        False,
        "element" if case.element == "f4" else "normalized_float",
        "" if case.memory == "array" else "under",
        case.layers,
    )


def corners(case: Case) -> NDArray[np.int32]:
    """(1, 32, 4): the lower corner texels of a case's samples."""
    x, y, z = np.floor(case.coordinates - (0.5 if case.linear else 0)).astype(np.int32)
    dimensions = len(case.extent)
    found = [x, y if dimensions > 1 else 0 * y, z if dimensions > 2 else 0 * z]
    layer = z if case.layers else 0 * z
    return np.stack([*found, layer], axis=1)[None]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[int]]:
    """Requests and sectors of a case."""
    path = tmp_path_factory.mktemp("footprints") / "all.cutrace"
    with TraceWriter(path) as trace:
        for case in CASES.values():
            texel = np.dtype(case.element).itemsize * case.channels
            size = texel * int(np.prod(case.extent))
            under = Array("under", Space.GLOBAL, BASE, size, texel, (), texel * case.extent[0])
            told = launch(textures=(described(case),), arrays=(under,))
            name = "tex.1d.v4.f32.s32" if case.memory == "linear" else "tex.2d.v4.f32.f32"
            active = sum(1 << lane for lane in np.flatnonzero(MASKS[case.mask]).tolist())
            with trace.launch(told) as rows:
                rows.instructions(instruction_table([instruction(0, name, bytes=16)]))
                rows.texels([0], [0], [0], [0], [0], [active], corners(case))
    launches = dict(zip(CASES, read_trace(path).launches, strict=True))
    h200 = [load_device("h200")]

    def count(name: str) -> list[int]:
        (found,) = replay(launches[name], h200)
        totals = [f"texture_load_{what}" for what in ("split_requests", "sectors")]
        return [int(found.counts[total].sum()) for total in totals]

    return count


@pytest.mark.parametrize("name", COUNTED)
def test_a_warp_samples_as_on_the_h200(name: str, counted: Callable[[str], list[int]]) -> None:
    """In three dimensions z was a texel's middle: the chip left the further slice out."""
    requests, sectors = COUNTED[name]
    slices = 2 if CASES[name].linear and len(CASES[name].extent) == 3 else 1
    assert counted(name) == [requests, slices * sectors]


def test_every_case_was_counted() -> None:
    assert COUNTED.keys() == CASES.keys()


def write_edge(trace: TraceWriter, case: Edge) -> None:
    """Write the launch of a case at the edges, its samples those of our texture unit."""
    extent = (WIDE,) if case.row else (WIDE, HIGH)
    filter_mode = "linear" if case.linear else "point"
    texels = np.zeros(extent[::-1], np.float32)
    found = sampled(texture_of(texels, case.mode, filter_mode, case.normalized), *case.coordinates)
    format_ = "f32" if case.channels == 1 else f"f32x{case.channels}"
    modes = (case.mode,) * len(extent)
    told = Texture("t", format_, extent, modes, filter_mode, case.normalized, "element")
    with trace.launch(launch(textures=(told,))) as rows:
        rows.instructions(instruction_table([instruction(0, "tex.2d.v4.f32.f32", bytes=16)]))
        rows.texels([0], [0], [0], [0], [0], [2**32 - 1], found.corner[None])


def test_edges_are_fetched_as_on_the_h200(tmp_path: Path) -> None:
    """Beyond a border the chip fetches what a clamped coordinate names, and nothing of weight 0."""
    with TraceWriter(tmp_path / "edges.cutrace") as trace:
        for case in edge_cases():
            write_edge(trace, case)
    found = {}
    for case, each in zip(edge_cases(), read_trace(tmp_path / "edges.cutrace").launches,
                          strict=True):  # fmt: skip
        (counted,) = replay(each, [load_device("h200")])
        totals = [f"texture_load_{what}" for what in ("split_requests", "sectors")]
        found[case.name] = [int(counted.counts[total].sum()) for total in totals]
    assert found.keys() == EDGES.keys()
    assert {name for name in found if found[name] != EDGES[name]} == BESIDE
    assert all(found[name] == [EDGES[name][0], EDGES[name][1] + 2] for name in BESIDE)

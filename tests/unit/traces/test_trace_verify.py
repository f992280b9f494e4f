import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hand_trace import (
    DEVICE_ARRAY,
    Access,
    Entry,
    hand_trace,
    instruction,
    instruction_table,
    launch,
)
from warps import BASE, FULL, warp

from cutrace.base.errors import CutraceError
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import PATHS as PATHS_SCHEMA
from cutrace.traces.schema import Array, Event, Launch, Outside, Resources, Space, Texture
from cutrace.traces.verify import verify
from cutrace.traces.writer import LaunchWriter, TraceWriter

CODE = [
    instruction(0),
    instruction(1, "add.f32"),
    instruction(2, "bra", predicate="%p1"),
    instruction(3, "st.global.f32", block=1),
    instruction(4, "add.f32", block=1, predicate="%p2"),
    instruction(5, "ret", block=2),
]
"""Block 0: load, add, branch; block 1: store, predicated add; block 2: return."""

LOWER = 0xFFFF
PATHS: list[list[Entry]] = [
    [(0, FULL, 0, 1, 3), (0, FULL, LOWER, 2, 1)],
    [(1, FULL & ~LOWER, 0, 0, 1), (2, FULL, 0, 0, 1)],
]
"""Path 0: block 0 four times, 12 steps; path 1: block 1 for half a warp, then block 2, 3 steps."""

CONTROL = [(0, 0, 0, 0), (0, 0, 12, 1)]

UPPER = range(16, 32)
ACCESSES = [
    Access(warp(), step=0),
    Access(warp(), step=9),
    Access(warp(lanes=UPPER), pc=3, step=12),
]


def findings(
    path: Path,
    accesses: Sequence[Access] = ACCESSES,
    *,
    launch: Launch | None = None,
    instructions: Sequence[dict[str, object]] = CODE,
    paths: Sequence[Sequence[Entry]] = PATHS,
    control: Sequence[tuple[int, int, int, int]] = CONTROL,
) -> list[str]:
    """What is wrong with a trace that is sound but for what the caller changes."""
    trace = hand_trace(
        path / "x.cutrace",
        accesses,
        launch=launch,
        instructions=instructions,
        paths=paths,
        control=control,
    )
    return verify(trace)


def test_a_sound_trace_has_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path) == []


def test_a_trace_of_accesses_alone_is_sound(tmp_path: Path) -> None:
    assert findings(tmp_path, paths=[], control=[]) == []


def test_an_empty_trace_is_sound(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()):
        pass
    assert verify(read_trace(tmp_path / "x.cutrace")) == []


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({0: {"space": "globl"}}, "row 0: `ld.global.f32` in a space `globl`"),
        ({1: {"barrier_threads": 64}}, "row 1: `add.f32` counts threads of no barrier"),
        ({1: {"barrier": 16}}, "row 1: `add.f32` waits at barrier 16 of 16"),
        ({1: {"barrier": -2}}, "row 1: `add.f32` waits at barrier -2 of 16"),
        ({1: {"file": ""}}, "row 1: `add.f32` has line 2 of no file"),
        ({1: {"opcode": "sub"}}, "row 1: `add.f32` with opcode `sub`"),
    ],
)
def test_instructions_that_contradict_themselves(
    tmp_path: Path, changed: dict[int, dict[str, object]], finding: str
) -> None:
    code = [row | changed.get(pc, {}) for pc, row in enumerate(CODE)]
    assert findings(tmp_path, instructions=code) == [f"launch 0 (k): instructions: {finding}"]


@pytest.mark.parametrize(
    ("entry", "finding"),
    [
        ((0, 0, 0, 0, 1), "no lane is active"),
        ((0, 1, 2, 1, 1), "inactive lanes do not take its branch"),
        ((0, 3, 1, 0, 1), "a branch that leads nowhere"),
        ((0, 1, 0, 2, 1), "more targets than active lanes"),
        ((0, FULL, 0, 0, 0), "it is repeated 0 times"),
    ],
)
def test_path_entries_that_no_warp_runs(tmp_path: Path, entry: Entry, finding: str) -> None:
    paths = [PATHS[0], [PATHS[1][0], entry]]
    found = findings(tmp_path, paths=paths)
    assert found == [f"launch 0 (k): paths: row 1: entry 1: {finding}"]


def test_a_path_without_entries(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.instructions(instruction_table(CODE))
        rows.paths([2, 0], [0, 2], FULL, 0, 0, 1)
    (found,) = verify(read_trace(tmp_path / "x.cutrace"))
    assert found.endswith(
        "0/paths.arrow: damaged or not from a trace: row 1: a path without basic blocks"
    )


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({1: {"pc": 2}}, "row 1: pc is not the row's number"),
        (
            {pc: {"block": 1} for pc in range(3)},
            "row 0: its basic block is not this one's or the next",
        ),
        ({5: {"block": 3}}, "row 5: its basic block is not this one's or the next"),
    ],
)
def test_instructions_out_of_order_are_not_read(
    tmp_path: Path, changed: dict[int, dict[str, object]], finding: str
) -> None:
    code = [row | changed.get(pc, {}) for pc, row in enumerate(CODE)]
    (found,) = findings(tmp_path, instructions=code)
    assert found.endswith(f"0/instructions.arrow: damaged or not from a trace: {finding}")
    with pytest.raises(CutraceError, match=re.escape(finding)):
        read_trace(tmp_path / "x.cutrace").launches[0].instructions()


def test_lists_of_a_path_that_differ_in_length_are_not_read(tmp_path: Path) -> None:
    assert findings(tmp_path) == []
    file = tmp_path / "x.cutrace" / "0" / "paths.arrow"
    row = {"blocks": [0, 1], "active": [1, 1], "not_taken": [0], "targets": [0, 0]}
    table = pa.Table.from_pylist([{**row, "repeat": [1, 1]}] * 2, PATHS_SCHEMA)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(CutraceError, match="row 0: `not_taken` and `blocks` have different lengt"):
        read_trace(tmp_path / "x.cutrace").launches[0].paths()


def test_accesses_outside_of_instructions_that_are_not_there_are_not_read(tmp_path: Path) -> None:
    stray = launch(outside=(Outside(6, 1, 0, 0, 0),))
    findings(tmp_path, launch=stray)
    with pytest.raises(CutraceError, match="of instructions that are not among the 6 there"):
        read_trace(tmp_path / "x.cutrace").launches[0].instructions()


def test_paths_over_basic_blocks_that_are_not_there_are_not_read(tmp_path: Path) -> None:
    paths = [PATHS[0], [PATHS[1][0], (3, FULL, 0, 0, 1)]]
    (found,) = findings(tmp_path, paths=paths)
    assert found.endswith(
        "0/paths.arrow: damaged or not from a trace: row 1: entry 1: there are 3 basic blocks"
    )


@pytest.mark.parametrize(
    ("control", "finding"),
    [
        ([(0, 0, 1, 0), (0, 0, 13, 1)], "row 0: its step does not follow"),
        ([(0, 0, 0, 0), (0, 0, 13, 1)], "row 1: its step does not follow"),
        ([(0, 0, 12, 1), (0, 0, 0, 0)], "row 0: its step does not follow"),
    ],
)
def test_steps_of_a_warp_that_do_not_follow_one_another(
    tmp_path: Path, control: list[tuple[int, int, int, int]], finding: str
) -> None:
    found = findings(tmp_path, accesses=[], control=control)
    assert found[0].startswith(f"launch 0 (k): control: {finding}")


def test_a_warp_that_never_ran(tmp_path: Path) -> None:
    found = findings(tmp_path, launch=launch(grid=(3, 1, 1)))
    assert found == ["launch 0 (k): control: 1 warps ran, but the grid has 3"]


def test_lanes_that_the_last_warp_does_not_have(tmp_path: Path) -> None:
    # 40 threads: warp 1 has the 8 lanes of 0xFF
    path: list[Entry] = [(0, FULL, 0, 0, 1)]
    narrow: list[Entry] = [(0, 0xFF, 0, 0, 1)]
    found = findings(
        tmp_path,
        accesses=[Access(warp(lanes=range(9)), warp=1)],
        launch=launch(block=(40, 1, 1)),
        paths=[path, narrow],
        control=[(0, 0, 0, 0), (0, 1, 0, 0)],
    )
    assert found == [
        "launch 0 (k): control: row 1: its path has lanes on that the warp does not have",
        "launch 0 (k): accesses: row 0: lanes that the warp does not have",
    ]


def row_findings(path: Path, *accesses: Access, launch: Launch | None = None) -> list[str]:
    """Findings of a trace of accesses alone, without the words that they share."""
    found = findings(path, accesses, launch=launch, paths=[], control=[])
    assert all(finding.startswith("launch 0 (k): accesses: ") for finding in found)
    return [finding.removeprefix("launch 0 (k): accesses: ") for finding in found]


def test_a_step_that_falls(tmp_path: Path) -> None:
    found = row_findings(tmp_path, Access(warp(), step=5), Access(warp(), step=4))
    assert found == ["row 1: its step is before that of the warp's row before"]


def test_steps_of_different_warps_are_independent(tmp_path: Path) -> None:
    accesses = [Access(warp(), step=5), Access(warp(), warp=1, step=4)]
    assert row_findings(tmp_path, *accesses, launch=launch(block=(64, 1, 1))) == []


@pytest.mark.parametrize(
    ("parts", "row"), [([(0, 0), (0, 2)], 1), ([(0, 1)], 0), ([(0, 0), (0, 0)], 1), ([(1, 1)], 0)]
)
def test_parts_that_are_not_counted_from_0(
    tmp_path: Path, parts: list[tuple[int, int]], row: int
) -> None:
    accesses = [Access(warp(), step=step, part=part) for step, part in parts]
    found = row_findings(tmp_path, *accesses)
    assert found == [f"row {row}: its part or pc does not follow from the warp's row before"]


def test_parts_of_one_step_are_of_one_instruction(tmp_path: Path) -> None:
    sound = [Access(warp(), pc=3), Access(warp(), pc=3, part=1)]
    assert row_findings(tmp_path, *sound) == []
    mixed = [Access(warp(), pc=3), Access(warp(), pc=0, part=1)]
    assert len(row_findings(tmp_path, *mixed)) == 1


def test_an_instruction_that_moves_no_bytes(tmp_path: Path) -> None:
    found = row_findings(tmp_path, Access(warp(), pc=1))
    nowhere = "row 0: not in a space that its instruction reaches"
    assert found == [nowhere, "row 0: its instruction moves no bytes"]


def test_a_space_that_the_instruction_does_not_name(tmp_path: Path) -> None:
    access = Access(warp(base=0), space=Space.SHARED)
    shared = launch(shared_static=128)
    found = row_findings(tmp_path, access, launch=shared)
    assert found == ["row 0: not in a space that its instruction reaches"]


MEGABYTE = DEVICE_ARRAY.bytes


@pytest.mark.parametrize(
    ("last_byte", "sound"), [(BASE + MEGABYTE - 1, True), (BASE + MEGABYTE, False)]
)
def test_the_last_byte_of_the_last_lane_is_inside(
    tmp_path: Path, last_byte: int, sound: bool
) -> None:
    # 32 lanes of 4 bytes: 128 bytes that end at last_byte
    found = row_findings(tmp_path, Access(warp(stride=4, base=last_byte - 127)))
    assert found == ([] if sound else ["row 0: outside every array of global memory"])


def test_the_first_byte_of_any_lane_is_inside(tmp_path: Path) -> None:
    access = Access(warp(addresses=[BASE + 4, BASE - 4]))
    assert row_findings(tmp_path, access) == ["row 0: outside every array of global memory"]


def test_lanes_may_lie_in_different_arrays_but_not_between_them(tmp_path: Path) -> None:
    other = Array("other", Space.GLOBAL, BASE + 2 * MEGABYTE, 1024)
    two = launch(arrays=(DEVICE_ARRAY, other))
    across = Access(warp(addresses=[BASE, other.offset]))
    between = Access(warp(addresses=[BASE, BASE + MEGABYTE, other.offset]), step=1)
    found = row_findings(tmp_path, across, between, launch=two)
    assert found == ["row 1: outside every array of global memory"]


@pytest.mark.parametrize(
    ("mnemonic", "space", "sizes"),
    [
        ("ld.shared.f32", Space.SHARED, {"shared_static": 100, "shared_dynamic": 28}),
        ("ld.local.f32", Space.LOCAL, {"local_bytes": 128}),
        ("ld.const.f32", Space.CONST, {"arrays": (Array("c", Space.CONST, 0, 128),)}),
    ],
)
def test_every_space_has_its_window_of_here_128_bytes(
    tmp_path: Path, mnemonic: str, space: Space, sizes: dict[str, object]
) -> None:
    inside = Access(warp(stride=4, base=0), space=space)
    beyond = Access(warp(stride=4, base=4), space=space, step=1)
    found = findings(
        tmp_path,
        [inside, beyond],
        launch=launch(**sizes),
        instructions=[instruction(0, mnemonic)],
        paths=[],
        control=[],
    )
    place = f"outside every array of {space.name.lower()} memory"
    assert found == [f"launch 0 (k): accesses: row 1: {place}"]


@pytest.mark.parametrize(
    ("active", "offsets", "finding"),
    [
        (0, [0] * 32, "no lane is active"),
        (0b101, [0, 4, 8, *[0] * 29], "an inactive lane has an offset"),
        (0b110, [0, 4, 8, *[0] * 29], "the base is not the lowest active lane's"),
    ],
)
def test_patterns_that_contradict_themselves(
    tmp_path: Path, active: int, offsets: list[int], finding: str
) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as rows:
        rows.patterns([1, active], [[0] * 32, offsets])
    found = verify(read_trace(tmp_path / "x.cutrace"))
    assert found == [f"launch 0 (k): patterns: row 1: {finding}"]


@pytest.mark.parametrize(
    ("access", "finding"),
    [
        (Access(warp(), step=15), "the warp ran no such step"),
        (Access(warp(), step=1), "the warp ran another pc at this step"),
        (Access(warp(), pc=3, step=12), "inactive lanes take part"),
    ],
)
def test_accesses_that_the_warp_did_not_make(tmp_path: Path, access: Access, finding: str) -> None:
    found = findings(tmp_path, [access])
    assert found == [f"launch 0 (k): accesses: row 0: {finding}"]


def test_many_rows_of_one_kind_are_one_finding(tmp_path: Path) -> None:
    accesses = [Access(warp(base=0), step=step) for step in range(3)]
    assert row_findings(tmp_path, *accesses) == [
        "row 0: outside every array of global memory (and 2 more rows)"
    ]


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        ([(0, 1, 5)], "row 0: its instruction is not predicated, or has rows of its own"),
        ([(0, 2, 5)], "row 0: its instruction is not predicated, or has rows of its own"),
        ([(0, 4, 5), (0, 4, 6)], "a block has two sums for one pc"),
        ([(0, 4, 5)], ""),
    ],
)
def test_lanes_on_of_predicated_instructions_only_and_once(
    tmp_path: Path, rows: list[tuple[int, int, int]], finding: str
) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(launch()) as writer:
        writer.instructions(instruction_table(CODE))
        writer.lanes_on(*zip(*rows, strict=True))
    found = verify(read_trace(tmp_path / "x.cutrace"))
    assert found == ([f"launch 0 (k): lanes_on: {finding}"] if finding else [])


IMAGE = Texture("image", "f32", (5, 4), ("clamp", "clamp"), "linear", False, "element")


def sample(
    rows: LaunchWriter, step: int, active: int, corners: list[int], pc: int = 0, texture: int = 0
) -> None:
    """A sample by lanes whose corner's i is given, the other three coordinates 0."""
    corner = [[[i, 0, 0, 0] for i in corners]]
    rows.texels(0, 0, step, pc, texture, active, corner)


def test_texels_keep_the_rules_of_accesses(tmp_path: Path) -> None:
    textured = launch(textures=(IMAGE,), block=(4, 1, 1))
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(textured) as rows:
        rows.instructions(instruction_table([instruction(0, "tex.2d.v4.f32.f32")]))
        sample(rows, 3, 0b11, [1, 2, *[0] * 30])
        sample(rows, 2, 0b11, [1, 2, *[0] * 30])
        sample(rows, 4, 0b1, [1, 2, *[0] * 30])
        sample(rows, 5, 0, [0] * 32)
        sample(rows, 6, 0b10000, [0] * 32)
    assert verify(read_trace(tmp_path / "x.cutrace")) == [
        "launch 0 (k): texels: row 3: no lane is active",
        "launch 0 (k): texels: row 4: lanes that the warp does not have",
        "launch 0 (k): texels: row 2: an inactive lane has a corner",
        "launch 0 (k): texels: row 1: its step is before that of the warp's row before",
    ]


def test_lanes_of_one_instruction_may_sample_different_textures(tmp_path: Path) -> None:
    code = [instruction(pc, "tex.2d.v4.f32.f32") for pc in range(2)]
    textured = launch(textures=(IMAGE, IMAGE))
    with TraceWriter(tmp_path / "x.cutrace") as trace, trace.launch(textured) as rows:
        rows.instructions(instruction_table(code))
        sample(rows, 0, 0b01, [0] * 32, texture=0)
        sample(rows, 0, 0b10, [0] * 32, texture=1)
        sample(rows, 0, 0b11, [0] * 32, pc=1)
    assert verify(read_trace(tmp_path / "x.cutrace")) == [
        "launch 0 (k): texels: row 2: its step is that of the warp's row before, but its pc is not"
    ]


OVERLAPPING = Array("other", Space.GLOBAL, BASE + MEGABYTE - 1, 4)


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"grid": (0, 1, 1)}, "grid (0, 1, 1), block (32, 1, 1): every size is at least 1"),
        (
            {"prefers": "101"},
            "prefers is '101': a percentage or a cache configuration",
        ),
        (
            {"waiting": (2, 1)},
            "waiting is (2, 1): basic blocks are numbers that rise from 0",
        ),
        (
            {"grid": (3, 1, 1), "cluster": (2, 1, 1)},
            "grid (3, 1, 1) is not made of whole clusters of (2, 1, 1) blocks",
        ),
        (
            {"grid": (2**31, 1, 1)},
            "grid (2147483648, 1, 1), block (32, 1, 1): no device takes more blocks than "
            "(2147483647, 65535, 65535), nor blocks of more than 1024 threads",
        ),
        (
            {"block": (1024, 2, 1)},
            "grid (1, 1, 1), block (1024, 2, 1): no device takes more blocks than "
            "(2147483647, 65535, 65535), nor blocks of more than 1024 threads",
        ),
        ({"local_bytes": -1}, "local_bytes is -1"),
        ({"parameter_bytes": 2**62}, "parameter_bytes is 4611686018427387904"),
        ({"resources": (Resources("75", 8, 0, 0, 0),)}, "resources of `75`, expected an arch"),
        ({"source": "k.cu"}, "source `k.cu` is not among the manifest's sources"),
        ({"arrays": (DEVICE_ARRAY, OVERLAPPING)}, "arrays `data` and `other` overlap"),
        (
            {"arrays": (Array("a", Space.GLOBAL, 2**62, 1),)},
            "array `a` ends beyond 2**62",
        ),
        (
            {"arrays": (Array("a", Space.GLOBAL, 0, -1),)},
            "array `a` has a negative size or address",
        ),
        (
            {"resources": (Resources("sm_75", 8, 0, 0, 0), Resources("sm_75", 9, 0, 0, 0))},
            "resources of sm_75 are given 2 times",
        ),
        (
            {"textures": (replace(IMAGE, array="gone"),)},
            "texture `image` lies over array `gone`, which is not there",
        ),
        ({"textures": (replace(IMAGE, format="u8x3"),)}, "texture `image`: unknown format `u8x3`"),
        (
            {"textures": (replace(IMAGE, extent=(5, 0)),)},
            "texture `image`: extent (5, 0), 0 layers",
        ),
        (
            {"textures": (replace(IMAGE, address_mode=("clamp",)),)},
            "texture `image`: 1 address modes of 2 dimensions",
        ),
        (
            {"textures": (replace(IMAGE, address_mode=("clamp", "warp")),)},
            "texture `image`: unknown mode `warp`",
        ),
        (
            {"textures": (replace(IMAGE, filter_mode="cubic"),)},
            "texture `image`: unknown mode `cubic`",
        ),
    ],
)
def test_launches_that_contradict_themselves(
    tmp_path: Path, fields: dict[str, object], finding: str
) -> None:
    wanted = rf"x\.cutrace/manifest\.json: launch 0 \(k\): {re.escape(finding)}"
    with pytest.raises(CutraceError, match=wanted):
        findings(tmp_path, launch=launch(**fields), paths=[], control=[])


def test_a_launch_too_large_for_its_rows_to_be_checked(tmp_path: Path) -> None:
    found = findings(tmp_path, launch=launch(grid=(2**31 - 1, 3, 1)), paths=[], control=[])
    assert found == ["launch 0 (k): 6442450941 blocks of 1 warps: too many to check their rows"]


@pytest.mark.parametrize(
    ("event", "finding"),
    [
        (Event("free"), "event 0: kind `free`, expected copy, set, launch, library"),
        (Event("copy", direction="HtoD", name="x"), "event 0: a copy with the name `x`"),
        (Event("library"), "event 0: a library with the name ``"),
        (Event("copy", 4, "HtoH"), "event 0: direction `HtoH` of a copy"),
        (Event("copy", -4, "HtoD"), "event 0: -4 bytes"),
        (Event("set", 4, launch=0), "event 0: a set with launch 0"),
        (Event("launch", launch=0), "events launch [0], but there are 0 launches"),
    ],
)
def test_events_that_contradict_themselves(tmp_path: Path, event: Event, finding: str) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        trace.event(event)
    assert verify(read_trace(tmp_path / "x.cutrace")) == [f"manifest: {finding}"]


def test_files_that_are_no_part_of_the_trace(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "x.cutrace")
    (trace.path / "1").mkdir()
    (trace.path / "0" / "notes.txt").write_text("mine")
    assert verify(trace) == [
        "folder: 1 is no part of the trace",
        "folder: 0/notes.txt is no part of the trace",
    ]


def test_a_damaged_table_is_a_finding_too(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "x.cutrace", ACCESSES[:1])
    path = trace.path / "0" / "patterns.arrow"
    path.write_bytes(b"ARROW1" + bytes(64) + b"ARROW1")
    (finding,) = verify(read_trace(trace.path))
    assert "patterns.arrow: damaged or not from a trace" in finding

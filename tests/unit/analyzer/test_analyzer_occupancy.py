"""`cutrace occupancy`: every limit, advice, curves, from numbers and from traces."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hand_trace import hand_trace, instruction, launch

from cutrace.analyzer.occupancy.occupancy import (
    Curve,
    Resident,
    count_schedulers,
    draw_curves,
    from_launch,
    from_numbers,
    textbook,
)
from cutrace.analyzer.occupancy.occupancy_report import occupancy_document
from cutrace.analyzer.report import render
from cutrace.analyzer.report.view import View
from cutrace.commands._main import run
from cutrace.models.analyses.occupancy import Need, occupancy
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import Device, load_device
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.schema import Resources

PLAIN = ReplayOptions()
PIPE = View(first="device: x", last="cutrace y")
Captured = pytest.CaptureFixture[str]


def shown(residents: Sequence[Resident], curves: Sequence[Sequence[Curve]], view: View) -> str:
    """What `occupancy` prints."""
    return render(occupancy_document(residents, curves, view), "table")


@pytest.mark.document("000.11", "schedulers x 32 threads, blocks for all of them")
@pytest.mark.parametrize(
    ("device", "threads", "blocks"),
    # 1, 2, 4 and 4 schedulers of 32 lanes; 10,000 threads, rounded up to whole blocks
    [("8800gtx", 32, 313), ("gtx580", 64, 157), ("k20", 128, 79), ("h200", 128, 79)],
)
def test_advice_keeps_all_schedulers_busy(device: str, threads: int, blocks: int) -> None:
    found = textbook(load_device(device), Need(256, 20, 1024), 10_000)
    assert (found.threads, found.blocks, found.bound_by) == (threads, blocks, "warp schedulers")


def small(**limits: int) -> Device:
    """A device of four schedulers with less of something."""
    return load_device("k20", {f"limits.{name}": value for name, value in limits.items()})


@pytest.mark.document("000.11", "rounded down to warps where registers bind, not up")
def test_where_registers_bind_advice_rounds_down_so_that_they_suffice() -> None:
    # 8192 // 100 = 81 threads: 64; the text's 96 would need 9600 registers
    found = textbook(small(registers_per_block=8192), Need(256, 100), 1000)
    assert (found.threads, found.blocks, found.bound_by) == (64, 16, "registers")


@pytest.mark.document("000.11", "rounded down to warps where shared memory binds, not up")
def test_where_shared_memory_binds_advice_rounds_down_so_that_it_suffices() -> None:
    # 64 bytes a thread: 4800 // 64 = 75 threads: 64
    found = textbook(small(shared_per_block=4800), Need(256, None, 256 * 64), None)
    assert (found.threads, found.blocks, found.bound_by) == (64, None, "shared memory")


def test_no_warp_fits_and_no_blocks_are_advised() -> None:
    found = textbook(small(registers_per_block=1024), Need(32, 100), 1000)
    assert (found.threads, found.blocks) == (0, None)


@pytest.mark.parametrize(("registers", "shared"), [(None, 0), (20, 0), (48, 4096), (100, 12000)])
def test_advice_never_lowers_occupancy_and_holds_when_it_is_followed(
    registers: int | None, shared: int
) -> None:
    for device in map(load_device, device_names()):
        for threads in (32, 100, 192, 256, 512):
            asked = from_numbers(device, Need(threads, registers, shared), PLAIN, 10_000)
            best = asked.advice.occupancy
            assert best.active_warps >= asked.occupancy.active_warps
            if not asked.advice.is_better:
                assert best.need == asked.occupancy.need
                continue
            assert best.active_warps > asked.occupancy.active_warps
            followed = from_numbers(device, best.need, PLAIN, 10_000)
            assert followed.occupancy.active_warps == best.active_warps
            assert not followed.advice.is_better


@pytest.mark.parametrize("device", ["gtx580", "8800gtx"])
def test_a_block_at_full_occupancy_is_left_alone(device: str) -> None:
    # gtx580: 6 blocks of 8 warps are all 48; 8800gtx: 3 blocks of 8 are all 24
    resident = from_numbers(load_device(device), Need(256), PLAIN, 10_000)
    # 10,000 / 256, rounded up
    assert (
        "advice: stay at 256 threads a block, no size holds more warps on an SM; 40 blocks for"
        " the grid\n"
    ) in shown([resident], [()], View(width=200)).replace("\n  ", " ")


def test_every_device_has_schedulers() -> None:
    counts = {name: count_schedulers(load_device(name).capability) for name in device_names()}
    told = {"8800gtx": 1, "gtx580": 2, "k20": 4, "gtx980": 4, "p100": 2, "v100": 4, "h200": 4}
    assert {name: counts[name] for name in told} == told


@pytest.mark.parametrize(
    ("device", "blocks", "threads", "bytes_a_thread", "too_few"),
    [
        ("8800gtx", 4, 128, 32, ()),  # 512 threads, 16 KB
        ("8800gtx", 8, 128, 16, ("warps",)),  # 1024 > 768 threads
        ("8800gtx", 16, 32, 64, ("blocks", "shared")),  # 16 > 8 blocks, 32 KB
        ("gtx280", 2, 512, 32, ("shared",)),  # 32 KB
        ("gtx280", 4, 256, 16, ()),  # 1024 threads, 16 KB
        ("gtx280", 8, 256, 8, ("warps",)),  # 2048 > 1024 threads
    ],
)
@pytest.mark.document("002.4", "`cutrace occupancy --blocks` names all that forbid b, c, d, f")
def test_all_that_forbids_an_assignment_is_named(
    device: str, blocks: int, threads: int, bytes_a_thread: int, too_few: tuple[str, ...]
) -> None:
    need = Need(threads, None, threads * bytes_a_thread)
    found = from_numbers(load_device(device), need, PLAIN, target_blocks=blocks)
    assert found.too_few == too_few
    said = shown([found], [()], PIPE)
    assert ("possible\n" in said) == (not too_few)
    for name in too_few:
        assert f"{name} (room for {found.occupancy.limits[name]})" in said


def test_curves_hold_every_value_once_with_the_warps_that_fit() -> None:
    device, need = load_device("gtx580"), Need(256, 48, 4096)
    threads, registers, shared = draw_curves(from_numbers(device, need, PLAIN), PLAIN)
    assert [curve.here for curve in (threads, registers, shared)] == [256, 48, 4096]
    assert [(p.first, p.last) for p in registers.stretches][-1] == (43, 63)
    for part in registers.stretches:
        for value in range(part.first, part.last + 1):
            found = occupancy(device.limits, Need(256, value, 4096))
            assert (found.active_warps, found.limited_by) == (part.warps, part.limited_by)
    ends = [(part.first, part.last) for part in shared.stretches]
    assert (ends[0][0], ends[-1][1]) == (0, 49152)
    assert all(last + 128 == first for (_, last), (first, _) in pairwise(ends))
    assert sum((p.last - p.first) // 32 + 1 for p in threads.stretches) == 1024 // 32


def test_a_launch_brings_its_registers_and_barriers(tmp_path: Path) -> None:
    made = launch(block=(256, 1, 1), resources=(Resources("sm_90", 40, 0, 0, 0),))
    table = [
        instruction(0, "barrier.sync", bytes=0, barrier=0),
        instruction(1, "barrier.sync", bytes=0, barrier=3),
    ]
    trace = hand_trace(tmp_path / "k.cutrace", launch=made, instructions=table)
    found = from_launch(trace.launches[0], load_device("h200"), PLAIN).occupancy
    # 40 x 32 = 1280 registers a warp; 65536 / 4 // 1280 = 12 a partition, 48; 48 // 8 = 6
    assert (found.blocks, found.limited_by) == (6, ("registers",))
    assert found.limits["barriers"] == 16  # a block takes barriers 0 to 3, as on an H100: 64 / 4


@pytest.mark.parametrize(
    ("ids", "assembled", "room"),
    [
        ((), -1, 64),  # no barrier counts as one
        ((-1,), -1, 4),  # from a register: the assembler takes all, 64 / 16
        ((-1, 0), -1, 4),
        ((7,), -1, 8),
        ((-1, -1), 3, 21),  # the assembler found constants in the registers
        ((7,), 0, 64),  # it removed the barrier
    ],
)
def test_barriers_are_what_the_assembler_takes(
    ids: tuple[int, ...], assembled: int, room: int, tmp_path: Path
) -> None:
    made = launch(resources=(Resources("sm_90", 16, 0, 0, 0, barriers=assembled),))
    table = [instruction(pc, "bar.sync", bytes=0, barrier=id) for pc, id in enumerate(ids)]
    trace = hand_trace(tmp_path / "k.cutrace", launch=made, instructions=table)
    resident = from_launch(trace.launches[0], load_device("h100"), PLAIN)
    assert resident.occupancy.limits["barriers"] == room


@pytest.mark.parametrize("width", [60, 100, None])
def test_no_width_cuts_anything(width: int | None) -> None:
    resident = from_numbers(load_device("gtx580"), Need(256, 48, 4096), PLAIN, 10_000, 3)
    said = shown([resident], [draw_curves(resident, PLAIN)], replace(PIPE, width=width))
    assert max(map(len, said.splitlines())) <= (width or 100)
    plain = shown([resident], [draw_curves(resident, PLAIN)], PIPE)
    bars = {"#", "."}
    assert [w for w in said.split() if not bars & {*w}] == [
        w for w in plain.split() if not bars & {*w}
    ]


def test_numbers_alone_answer_the_verb(capsys: Captured) -> None:
    command = ["occupancy", "-d", "gtx580", "--threads", "256", "--registers", "48"]
    assert run(command) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "gtx580: 2 blocks of 256 threads on an SM, 16 of 48 warps, 33.3 %, limited by registers\n"
        "limit      room for\n"
        "blocks     8 blocks\n"
        "warps      6 blocks\n"
        "registers  2 blocks  limits\n"
        # 48 x 32 = 1536 registers a warp: 21 warps, 20 in pairs; 20 // 4 = 5 blocks
        "advice: 128 threads a block: 20 of 48 warps, 41.7 %\n"
    )
    assert "43 to 63  16     ######..............  registers  <-\n" in said
    assert run([*command, "--no-curves", "--blocks", "3"]) == 0
    said = capsys.readouterr().out
    assert "3 blocks at once: not possible, limited by registers (room for 2)\n" in said
    assert "against" not in said


def test_a_trace_answers_for_every_launch_and_device(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "k.cutrace"
    hand_trace(path, launch=launch(block=(1024, 1, 1)), instructions=[instruction(0)])
    assert run(["occupancy", str(path), "-d", "8800gtx,h200"]) == 0
    said = capsys.readouterr().out
    assert "8800gtx: 0 blocks of 1024 threads on an SM" in said
    assert "cannot launch: 512 threads a block at most\n" in said
    assert "h200: 2 blocks of 1024 threads on an SM, 64 of 64 warps, 100 %" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to fit on an SM: give a trace, or --threads N"),
        (["--threads", "0"], "--threads 0: expected 1 or more"),
        (["--threads", "32", "--shared", "-1"], "--shared is '-1': expected bytes"),
        (["x.cutrace", "--threads", "32"], "a trace has its own numbers; leave out --threads"),
    ],
)
def test_wrong_numbers_are_answered(arguments: list[str], message: str, capsys: Captured) -> None:
    assert run(["occupancy", "-d", "h200", *arguments]) == 2
    assert message in capsys.readouterr().err

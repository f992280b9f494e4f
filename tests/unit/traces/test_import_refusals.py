"""What is wrong with a file of another tool is said with its line, in bounded memory."""

import gzip
import lzma
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import foreign_samples as samples
import pyarrow as pa
import pytest

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.traces.verify import verify

WARPS = samples.random_warps(1)
TRACEG = samples.traceg(WARPS, 3, 64)
MEM_TRACE = samples.mem_trace(WARPS, 3, 64)
CUTRACER = samples.cutracer(WARPS, 3, 64)


def refusal(tmp_path: Path, content: str | bytes, name: str) -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CutraceError) as caught:
        cutrace.import_trace([path], tmp_path / "x.cutrace")
    assert not (tmp_path / "x.cutrace").exists()
    return str(caught.value).replace(f"{tmp_path}/", "")


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


BROKEN = {
    "version": (
        TRACEG.replace("tracer version = 5", "tracer version = 9"),
        "tracer version 9; 1 to 5",
    ),
    "mask": (TRACEG.replace("0010 ffff", "0010 fgff", 1), "is no number; is the line whole?"),
    "too many": (TRACEG.replace("insts = 12", "insts = 11", 1), "more than `insts` says"),
    "too few": (
        TRACEG.replace("insts = 12", "insts = 13", 1),
        "1 instructions of warp 0 are missing",
    ),
    "block": (TRACEG.replace("block = 2,0,0", "block = 7,0,0"), "block 7 of a grid of 3 blocks"),
    "cut in a warp": (TRACEG[: len(TRACEG) * 3 // 4].rpartition("\n")[0], "cut off: the file ends"),
    "cut in the last block": (
        TRACEG.removesuffix("#END_TB\n"),
        "cut off: the file ends before #END",
    ),
    "no name": (
        TRACEG.replace("-kernel name = _Z5scalePf", "-kernel name = "),
        "`-kernel name = ...`",
    ),
    "warps": (TRACEG.replace("-block dim = (64,1,1)", "-block dim = (32,1,1)"), "threads for 1;"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_accel_sim_trace_is_refused_with_its_line(tmp_path: Path, case: str) -> None:
    text, expected = BROKEN[case]
    said = refusal(tmp_path, text, "kernel-1.traceg")
    assert expected in said


def test_the_line_that_is_broken_is_the_one_that_is_named(tmp_path: Path) -> None:
    text = TRACEG.replace("0050 ", "0050 zz ", 4)
    said = refusal(tmp_path, text, "kernel-1.traceg")
    assert said.startswith(f"kernel-1.traceg:{line_of(text, '0050 zz')}: ")


def test_an_address_of_more_bits_than_devices_have_is_refused(tmp_path: Path) -> None:
    steps = [samples.Step(0, "LDG.E", 1, ((0, 0xFFFFFFFFFFFFFFF0),)), samples.Step(16, "EXIT")]
    text = samples.traceg([(0, 0, steps)], 1, 32)
    assert "0xfffffffffffffff0" in refusal(tmp_path, text, "kernel-1.traceg")
    longer = text.replace("0xfffffffffffffff0", "0xffffffffffffffff0")
    assert "more than 64 bits" in refusal(tmp_path, longer, "kernel-1.traceg")


def test_a_list_leads_to_files_beside_it_alone(tmp_path: Path) -> None:
    assert "leads out of the folder" in refusal(tmp_path, "kernel-/../../k.traceg\n", "list.g")
    assert "kernel-9.traceg, packed or not" in refusal(tmp_path, "kernel-9.traceg\n", "list.g")
    assert "expected MemcpyHtoD,ADDRESS,BYTES" in refusal(tmp_path, "MemcpyHtoD,0x1\n", "list.g")


def test_a_line_of_mem_trace_that_is_cut_off_is_named(tmp_path: Path) -> None:
    cut = MEM_TRACE[: MEM_TRACE.rindex(" 0x")].rpartition(" 0x")[0]
    said = refusal(tmp_path, cut, "log.txt")
    assert said == f"log.txt:{len(cut.splitlines())}: 45 words, expected 47: is the line cut off?"


def test_rows_of_mem_trace_need_their_launch_above_them(tmp_path: Path) -> None:
    without = MEM_TRACE.replace(" - LAUNCH - ", " - launch - ")
    assert "no line `LAUNCH`" in refusal(tmp_path, without, "log.txt")
    other = MEM_TRACE.replace("grid_launch_id 1 - CTA 2", "grid_launch_id 2 - CTA 2")
    assert "above it is that of launch 1" in refusal(tmp_path, other, "log.txt")


def test_a_broken_record_of_cutracer_is_named(tmp_path: Path) -> None:
    lines = CUTRACER.splitlines()
    lines[7] = lines[7][:50]
    said = refusal(tmp_path, "\n".join(lines), "k.ndjson")
    assert said.startswith("k.ndjson:8: not a record of CUTracer's: ")
    few = CUTRACER.replace('"addrs": [', '"addrs": [7, ', 1)
    assert (
        refusal(tmp_path, few, "k.ndjson")
        == "k.ndjson:2: a mem_addr_trace record with not 32 addresses"
    )


def test_records_without_addresses_are_no_trace(tmp_path: Path) -> None:
    text = CUTRACER.replace("mem_addr_trace", "opcode_only")
    assert "opcode_only records, which have no addresses" in refusal(tmp_path, text, "k.ndjson")
    headless = "\n".join(CUTRACER.splitlines()[1:])
    assert "first line of a file is kernel_metadata" in refusal(tmp_path, headless, "k.ndjson")


def test_a_file_of_no_format_is_refused_with_the_formats(tmp_path: Path) -> None:
    said = refusal(tmp_path, "hello\n", "a.txt")
    assert "accel-sim, cutracer, mem_trace" in said
    assert "not text: byte 0xff" in refusal(tmp_path, TRACEG.encode() + b"\xff\n", "k.traceg")


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": lambda text: bytes(pa.Codec("zstd").compress(text, asbytes=True)),
}


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_that_is_cut_off_is_refused(tmp_path: Path, suffix: str) -> None:
    packed = PACK[suffix](TRACEG.encode())
    said = refusal(tmp_path, packed[: len(packed) // 2], f"kernel-1.traceg.{suffix}")
    assert "kernel-1.traceg" in said


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("filler", [b"0", b"\n"])
def test_a_bomb_does_not_fill_the_memory(tmp_path: Path, suffix: str, filler: bytes) -> None:
    bomb = PACK[suffix](TRACEG.encode() + filler * (1 << 24))  # 16 MiB from some KiB
    tracemalloc.start()
    said = refusal(tmp_path, bomb, f"kernel-1.traceg.{suffix}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "a line of more than" in said or "thousands of empty lines" in said
    assert peak < 3 << 24  # a chunk and what follows from it, not the whole


def test_lanes_that_the_block_does_not_have_are_refused(tmp_path: Path) -> None:
    steps = [samples.Step(0, "MOV"), samples.Step(16, "EXIT")]
    text = samples.traceg([(0, 0, steps)], 1, 16)
    said = refusal(tmp_path, text, "kernel-1.traceg")
    assert "lanes 0xffffffff in warp 0 of block 0, which has 16 threads" in said


def test_a_copy_beyond_any_memory_is_refused(tmp_path: Path) -> None:
    listed = f"MemcpyHtoD,0x10,{1 << 70}\n"
    assert "more than a device has of memory" in refusal(tmp_path, listed, "list.g")


def test_a_kernel_with_a_grid_that_no_device_takes_is_refused(tmp_path: Path) -> None:
    text = TRACEG.replace("-grid dim = (3,1,1)", "-grid dim = (3,99999,1)")
    assert "no device takes more blocks" in refusal(tmp_path, text, "kernel-1.traceg")


def test_a_block_of_nothing_is_refused(tmp_path: Path) -> None:
    text = TRACEG.replace("-block dim = (64,1,1)", "-block dim = (0,1,1)")
    assert "block (0, 1, 1): a launch of nothing" in refusal(tmp_path, text, "kernel-1.traceg")


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_packed_file_that_ends_early_is_called_so_though_nothing_of_it_is_known(
    tmp_path: Path, kind: str
) -> None:
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "xz": lzma.compress,
        "zst": lambda text: pa.Codec("zstd").compress(text).to_pybytes(),
    }
    packed = pack[kind](TRACEG.encode())
    file = tmp_path / f"kernel-1.traceg.{kind}"
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(CutraceError, match=r"cut off: the packed file ends|Truncated compressed"):
        cutrace.import_trace([file], tmp_path / "x.cutrace")


@pytest.mark.parametrize("text", [TRACEG, MEM_TRACE, CUTRACER], ids=["traceg", "mem", "cutracer"])
def test_a_damaged_file_is_refused_or_gives_a_sound_trace(tmp_path: Path, text: str) -> None:
    draw = random.Random(5)
    for _ in range(12):
        letters = list(text)
        place = draw.randrange(len(letters))
        letters[place : place + draw.choice([1, 30])] = draw.choice(["", "\n", "-1", "0", "9" * 20])
        (tmp_path / "kernel-1.traceg").write_text("".join(letters))
        try:
            cutrace.import_trace([tmp_path / "kernel-1.traceg"], tmp_path / "x.cutrace")
        except CutraceError:
            continue
        assert verify(cutrace.read_trace(tmp_path / "x.cutrace")) == []

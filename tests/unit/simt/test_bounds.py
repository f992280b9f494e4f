"""Accesses outside of every array, done as on a chip: memory is mapped in pages of 2 MiB."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.commands._main import run
from cutrace.tracer.program.session import SharedMemory
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.simt.memory.memory import Arena, Memory
from cutrace.traces.manifest import Unread, to_json
from cutrace.traces.schema import Outside, Space
from cutrace.traces.verify import verify

Said = pytest.CaptureFixture[str]

GUARD = 256
"""Bytes between arrays: each starts at a multiple of 256, this far behind the last one's end."""

PAGE = 1 << 21

SOURCE = """\
extern "C" __global__ void shift(float *out, const float *in, int by)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = in[t + by];
}
extern "C" __global__ void put(float *out, long place, float value)
{
    out[place + threadIdx.x] = value;
}
extern "C" __global__ void count(int *out, int place)
{
    atomicAdd(out + place, 1);
}
extern "C" __global__ void pairs(float *out, const float *in, int by)
{
    ((float2 *)out)[threadIdx.x] = *(const float2 *)(in + 2 * threadIdx.x + by);
}
"""


def reports(**more: Any) -> Any:
    """Let sessions report what is outside."""
    return default_options(RecordOptions(bounds="report", **more))


def outside_of(trace: Path, launch: int = 0) -> list[Outside]:
    """What a launch did outside of arrays; the trace is sound."""
    opened = cutrace.read_trace(trace)
    assert verify(opened) == []
    return [replace(one, pc=0) for one in opened.launches[launch].launch.outside]


def test_what_lies_behind_an_array_is_the_gap_and_then_the_next_array(tmp_path: Path) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        first = gpu.to_device(np.arange(1, 65, dtype=np.float32), "first")  # 256 bytes, from 0 on
        gpu.to_device(np.full(64, 9, np.float32), "second")  # from 512 on
        out = gpu.device_array(128, np.float32, "out")
        gpu.compile(SOURCE).get_function("shift")[2, 64](out, first, 3)
        return [out.copy_to_host()]

    with reports():
        trace = assert_same_under_both(tmp_path, launch)
        with cutrace.Session() as gpu:
            (out,) = launch(gpu)
    gap = GUARD // 4
    expected = [*range(4, 65), *[0] * gap, *[9] * (128 - 61 - gap)]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))
    # thread 61, the first whose float is the 65th, up to the last before float 128
    assert outside_of(trace) == [Outside(0, gap, 0, 61, 64 * 4)]


def test_what_is_stored_there_stays_and_a_new_array_reads_as_zeros(tmp_path: Path) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(32, np.float32, "out")  # 128 bytes
        module = gpu.compile(SOURCE)
        put, shift = module.get_function("put"), module.get_function("shift")
        put[1, 32](out, 32 + 100, 7.0)  # bytes 528 to 656 are of nobody yet
        seen = gpu.device_array(32, np.float32, "seen")  # from 512 on
        shift[1, 32](seen, out, 32 + 64)  # floats 96 to 127: bytes 384 to 512
        before = seen.copy_to_host()
        put[1, 1](seen, 32 + 5, 3.0)  # byte 660
        shift[1, 1](seen, seen, 32 + 5)
        return [before, seen.copy_to_host()]

    with reports():
        trace = assert_same_under_both(tmp_path, launch)
        with cutrace.Session() as gpu:
            before, after = launch(gpu)
    np.testing.assert_array_equal(before, np.zeros(32))
    np.testing.assert_array_equal(after, [3.0, *[0] * 31])
    assert outside_of(trace, 0) == [Outside(0, 32, 0, 0, 132 * 4)]
    assert outside_of(trace, 1) == [Outside(0, 32, 0, 0, 96 * 4)]


def test_atomics_and_vectors_that_begin_inside_are_counted(tmp_path: Path) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(32, np.int32, "out")
        module = gpu.compile(SOURCE)
        module.get_function("count")[3, 50](out, 40)
        pairs = gpu.device_array((32, 2), np.float32, "pairs")
        tail = gpu.to_device(np.full(65, 5, np.float32), "tail")
        module.get_function("pairs")[1, 32](pairs, tail, 4)
        return [pairs.copy_to_host()]

    with reports():
        trace = assert_same_under_both(tmp_path, launch)
    assert outside_of(trace, 0) == [Outside(0, 150, 0, 0, 160)]
    # `tail` lies behind 128 bytes of `out` (to 384) and 256 of `pairs` (to 768): from 1024 on.
    # 260 bytes; lane 30 takes bytes 256 to 264 of it, half of them outside, and lane 31 the next.
    assert outside_of(trace, 1) == [Outside(0, 2, 0, 30, 1024 + 256)]


def test_pages_without_an_array_are_not_mapped() -> None:
    arena = Arena(Space.GLOBAL, 1 << 30, GUARD, 1 << 40, page=PAGE)
    assert [each.tolist() for each in arena.mapped_ranges()] == [[0], [0]]
    first, big, last = (
        arena.allocate(size, name, 256)
        for size, name in ((100, "first"), (5 * PAGE, "big"), (3, "last"))
    )
    base = arena.base
    assert [e.tolist() for e in arena.mapped_ranges()] == [[base, 0], [base + 6 * PAGE, 0]]
    arena.free(big)  # it lay from byte 512 on: page 0 has the first array, page 5 the last
    assert last.address == base + 5 * PAGE + 512 + GUARD
    ranges = [[base, base + 5 * PAGE, 0], [base + PAGE, base + 6 * PAGE, 0]]
    assert [each.tolist() for each in arena.mapped_ranges()] == ranges
    arena.free(first)
    assert [e.tolist() for e in arena.mapped_ranges()] == [e[1:] for e in ranges]


@pytest.mark.parametrize("engine_name", ["array", "compiled"])
def test_the_hole_of_a_freed_array_is_no_memory_to_read(engine_name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path, engine=engine_name, bounds="report") as gpu:
        out = gpu.device_array(32, np.float32, "out")  # bytes 0 to 128
        big = gpu.device_array((5, PAGE // 4), np.float32, "big")  # from 512 on
        gpu.device_array(1, np.float32, "last")  # in page 5
        put = gpu.compile(SOURCE).get_function("put")
        gpu._recording.memory.global_.free(big._allocation)
        gpu._recording.arrays[:] = [a for a in gpu._recording.arrays if a.name != "big"]
        put[1, 32](out, PAGE // 4 - 32, 1.0)
        put[1, 32](out, 5 * PAGE // 4, 1.0)
        with pytest.raises(KernelFault, match="writes 4 bytes outside"):
            put[1, 32](out, PAGE // 4 - 31, 1.0)
    assert outside_of(path, 0) == [Outside(0, 32, 0, 0, PAGE - 128)]
    assert outside_of(path, 1) == [Outside(0, 32, 0, 0, 5 * PAGE)]


GENERIC = """\
.version 7.0
.target sm_70
.address_size 64
.visible .entry read(.param .u64 out, .param .u64 in)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    add.s64 %rd5, %rd1, %rd3;
    ld.u32 %r2, [%rd4+64];
    st.u32 [%rd5], %r2;
    ret;
}
"""


def test_generic_addresses_are_counted_as_those_of_global_memory(tmp_path: Path) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        data = gpu.to_device(np.arange(32, dtype=np.uint32), "in")
        out = gpu.device_array(32, np.uint32, "out")
        gpu.load_ptx(GENERIC).get_function("read")[1, 32](out, data)
        return [out.copy_to_host()]

    with reports():
        trace = assert_same_under_both(tmp_path, launch)
        with cutrace.Session() as gpu:
            (out,) = launch(gpu)
    np.testing.assert_array_equal(out, [*range(16, 32), *[0] * 16])
    assert outside_of(trace) == [Outside(0, 16, 0, 16, 128)]


@pytest.mark.parametrize("engine_name", ["array", "compiled"])
@pytest.mark.parametrize("by", [-1, PAGE // 4, 1 << 40])
def test_where_no_memory_is_mapped_it_is_still_a_fault(engine_name: str, by: int) -> None:
    with cutrace.Session(engine=engine_name, bounds="report") as gpu:
        out = gpu.device_array(32, np.float32, "out")
        put = gpu.compile(SOURCE).get_function("put")
        put[1, 1](out, PAGE // 4 - 1, 1.0)
        with pytest.raises(KernelFault, match="writes 4 bytes outside at global") as fault:
            put[1, 32](out, by, 1.0)
    assert "source.cu:8: kernel `put`" in str(fault.value)
    assert "thread (0, 0, 0) of block (0, 0, 0)" in str(fault.value)


def test_a_program_has_a_page_before_its_first_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        first = gpu.to_device(np.arange(1, 65, dtype=np.float32), "first")
        out = gpu.device_array(64, np.float32, "out")
        module = gpu.compile(SOURCE)
        module.get_function("put")[1, 32](first, -64, 7.0)  # 256 bytes before it
        module.get_function("shift")[1, 64](out, first, -48)
        return [out.copy_to_host()]

    shared = SharedMemory()
    monkeypatch.setattr(
        cutrace.Session, "_make_memory", lambda gpu: Memory(buffers=shared.arenas())
    )
    with reports():
        trace = assert_same_under_both(tmp_path, launch)
    with cutrace.Session(bounds="report") as gpu:
        (out,) = launch(gpu)
        put = gpu.compile(SOURCE).get_function("put")
        with pytest.raises(KernelFault, match="writes 4 bytes outside at global"):
            put[1, 1](gpu.device_array(1, np.float32), -PAGE, 7.0)  # before the window
    np.testing.assert_array_equal(out, [*[7] * 16, *[0] * 32, *range(1, 17)])
    assert outside_of(trace, 0) == [Outside(0, 32, 0, 0, PAGE - 256)]
    assert outside_of(trace, 1) == [Outside(0, 48, 0, 0, PAGE - 192)]


@pytest.mark.parametrize("engine_name", ["array", "compiled"])
def test_the_first_lane_at_fault_is_named_for_its_own_fault(engine_name: str) -> None:
    source = """
extern "C" __global__ void k(char *a) {
    *(int *)(a + (threadIdx.x == 3 ? 17 : threadIdx.x == 5 ? 1 << 20 : 4 * threadIdx.x)) = 1;
}"""
    where = r"4 bytes misaligned at global address 0x700000011 in thread \(3, 0, 0\).*multiple of 4"
    with pytest.raises(KernelFault, match=where), cutrace.Session(engine=engine_name) as gpu:
        gpu.compile(source).get_function("k")[1, 32](gpu.device_array(256, np.int8))


def test_bounds_are_strict_unless_asked(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        out = gpu.device_array(32, np.float32, "out")
        put = gpu.compile(SOURCE).get_function("put")
        with pytest.raises(KernelFault, match="just past the end of `out`"):
            put[1, 1](out, 32, 1.0)
    with pytest.raises(CutraceError, match="there are no bounds `loose`, expected strict or repo"):
        cutrace.Session(bounds="loose")


def said_of(trace: Path) -> str:
    """What is wrong with a trace."""
    try:
        return " ".join(verify(cutrace.read_trace(trace)))
    except CutraceError as error:
        return str(error)


def test_it_is_told_once_a_line(capsys: Said) -> None:
    with cutrace.Session(bounds="report") as gpu:
        out = gpu.device_array(32, np.float32, "out")
        put = gpu.compile(SOURCE).get_function("put")
        for value in (1.0, 2.0, 3.0):
            put[2, (4, 2)](out, 30, value)
    # 2 blocks, 2 rows of threads in each, and of these those with x 2 and 3
    assert capsys.readouterr().err == (
        "cutrace: source.cu:8: kernel `put` writes 4 bytes outside of every array, 8 times; first"
        " at global address 0x700000080 in thread (2, 0, 0) of block (0, 0, 0): just past the"
        " end of `out` (128 bytes)\n"
    )


def test_verify_counts_what_the_manifest_says(tmp_path: Path) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path, bounds="report") as gpu:
        out = gpu.device_array(32, np.float32, "out")
        gpu.compile(SOURCE).get_function("put")[1, 32](out, 31, 1.0)
    manifest = Unread((path / "manifest.json").read_bytes(), "").manifest()
    (outside,) = manifest.launches[0].outside
    wrong = {
        "31 lanes are outside of every array, but the manifest says 30": replace(outside, lanes=30),
        "there is no such access": replace(outside, thread=32),
        "outside every array of global memory": replace(outside, pc=0),
    }
    for problem, said in wrong.items():
        launch = replace(manifest.launches[0], outside=(said,))
        text = to_json(replace(manifest, launches=(launch,)))
        (path / "manifest.json").write_text(text)
        assert problem in said_of(path)


def test_check_memory_fails_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    line = "put<<<1, 32>>>(out:f32[32], 1, 2.0)"
    assert run(["record", "k.cu", "--launch", line, "--bounds", "report"]) == 0
    assert run(["check", "k.cutrace", "--memory"]) == 1
    said = capsys.readouterr().err
    assert "launch 0: k.cu:8: kernel `put` writes 4 bytes outside of every array, once at" in said
    assert run(["record", "k.cu", "--launch", line.replace("1, 2.0", "0, 2.0")]) == 0
    assert run(["check", "k.cutrace", "--memory"]) == 0
    assert "no lane accessed memory outside of every array" in capsys.readouterr().out


def faulty(gpu: cutrace.Session, sound: int) -> None:
    """So many launches that are sound, and one that is not."""
    out = gpu.device_array(32, np.float32, "out")
    put = gpu.compile(SOURCE).get_function("put")
    for _ in range(sound):
        put[1, 32](out, 0, 1.0)
    put[1, 32](out, 5, 1.0)


FAULT = "kernel `put` writes 4 bytes outside at global address 0x700000080"


@pytest.mark.parametrize("sound", [1, 3])
def test_a_fault_does_not_lose_the_launches_before_it(tmp_path: Path, sound: int) -> None:
    path = tmp_path / "t.cutrace"
    with pytest.raises(KernelFault, match=FAULT) as fault, cutrace.Session(path) as gpu:
        faulty(gpu, sound)
    trace = cutrace.read_trace(path)
    assert (len(trace.launches), verify(trace)) == (sound, [])
    assert trace.manifest.fault == str(fault.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.cutrace"]
    assert trace.launches[-1].launch.resources != ()
    assert trace.launches[-1].count("accesses") == 1


def test_a_first_launch_at_fault_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.cutrace"
    with pytest.raises(KernelFault, match=FAULT), cutrace.Session(path) as gpu:
        faulty(gpu, 0)
    assert list(tmp_path.iterdir()) == []


def test_after_a_fault_nothing_is_launched_but_the_rest_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        with pytest.raises(KernelFault, match=FAULT):
            faulty(gpu, 2)
        put = gpu.compile(SOURCE).get_function("put")
        with pytest.raises(CutraceError, match=f"nothing is launched after a fault.*{FAULT}"):
            put[1, 32](gpu.device_array(32, np.float32), 0, 1.0)
    trace = cutrace.read_trace(path)
    assert (len(trace.launches), verify(trace)) == (2, [])
    assert FAULT in trace.manifest.fault


def test_record_says_where_the_launches_before_a_fault_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    lines = [f"put<<<1, 32>>>(out:f32[32], {n}, 2.0)" for n in (0, 3)]
    assert run(["record", "k.cu", "--launch", lines[0], "--launch", lines[1]]) == 1
    said = capsys.readouterr().err
    assert said.startswith("cutrace: k.cu:8: kernel `put` writes 4 bytes outside at global")
    assert said.endswith("k.cutrace has the launch before it\n")
    assert run(["info", "k.cutrace", "--verify"]) == 0
    assert "fault     after 1 launches: k.cu:8: kernel `put`" in capsys.readouterr().out
    assert run(["check", "k.cutrace", "--memory"]) == 1

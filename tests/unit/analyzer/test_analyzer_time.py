"""The estimate of a launch's time: chains of steps written by hand, and launches on devices."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from profiles import render

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.time.chain import Operands, Step, read_operands, run_chain
from cutrace.analyzer.time.estimate_text import estimate_text
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import load_measured

SOURCE = """
extern "C" __global__ void nothing() {}
extern "C" __global__ void follow(int *out, const int *next, int hops)
{
    int at = threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < hops; k++) at = next[at];
    out[threadIdx.x] = at;
}
extern "C" __global__ void add_up(float *sum, const float *in)
{
    atomicAdd(sum, in[threadIdx.x]);
}
"""
HOPS = 64


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("time") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(SOURCE)
        places = (np.arange(1 << 14, dtype=np.int32) + 64) % (1 << 14)  # two lines further
        out, after = gpu.device_array(1024, np.int32, name="out"), gpu.to_device(places)
        ones = gpu.to_device(np.ones(32, np.float32))
        module.get_function("nothing")[1, 32]()
        module.get_function("follow")[1, 32](out, after, HOPS)
        module.get_function("follow")[1, 32](out, after, 2 * HOPS)
        module.get_function("add_up")[256, 32](gpu.device_array(1, np.float32), ones)
    return path


def on(trace: Path, number: int, device: str = "h200") -> LaunchProfile:
    return analyze(trace, device).launches[number]


def step(writes: str, reads: str, latency: float, **more: object) -> Step:
    operands = Operands(tuple(writes.split()), tuple(reads.split()))
    return Step(0, operands, latency, 1.0, "pipe", **more)  # type: ignore[arg-type]


def cycles(code: Mapping[int, Sequence[Step]], *history: tuple[int, int]) -> float:
    return run_chain(history, code).cycles


def test_a_step_waits_for_what_it_reads_and_others_do_not() -> None:
    chain = {0: [step("a", "", 100), step("b", "a", 4), step("c", "b", 4)]}
    assert cycles(chain, (0, 1)) == 100 + 4  # when the last has started
    apart = {0: [step("a", "", 100), step("b", "", 4), step("c", "", 4)]}
    assert cycles(apart, (0, 1)) == 3  # one a cycle


def test_a_loop_that_carries_its_value_costs_its_latency_each_round() -> None:
    code = {0: [step("a", "a", 30)]}
    assert cycles(code, (0, 50)) == pytest.approx(49 * 30 + 1, abs=2)
    found = run_chain([(0, 50)], code)
    assert found.stalls["pipe"] == pytest.approx(49 * 30, abs=30)


def test_loads_of_a_loop_that_the_compiler_unrolled_go_side_by_side() -> None:
    loads = [step(f"v{k}", "p", 400, is_load=True) for k in range(4)]
    body = [*loads, step("s", "s v0 v1 v2 v3", 4)]
    assert cycles({0: body}, (0, 16)) == pytest.approx(4 * (400 + 4 * 3), abs=10)


def test_a_load_does_not_pass_a_store_that_may_change_it() -> None:
    store = Step(0, Operands((), ("a",), ("p", 0)), 0, 1.0, "", stores=True, space="global")
    elsewhere, again = (
        Step(0, Operands(("b",), ("q",), at), 400, 1.0, "pipe", is_load=True, space="global")
        for at in (("p", 4), ("q", 0))
    )
    first, last = step("a", "", 400, is_load=True), step("c", "b", 4)
    assert cycles({0: [first, store, elsewhere, last]}, (0, 1)) < 410
    assert cycles({0: [first, store, again, last]}, (0, 1)) >= 800


@pytest.mark.parametrize(
    ("text", "writes", "reads", "address"),
    [
        ("setp.lt.s32 %p1|%p2, %r1, 5;", "%p1 %p2", "%r1", None),
        ("@!%p1 bra $L__BB0_2;", "", "%p1", None),
        ("@%p3 bra (after call 2);", "", "%p3", None),
        ("bra (after call 2);", "", "", None),
        ("call.uni (%r1), f, (%r2, %rd3);", "%r1", "%r2 %rd3", None),
        ("ld.global.u32 %r1, [%rd4+-8];", "%r1", "%rd4", ("%rd4", -8)),
        ("ld.param.u64 %rd1, [kernel_param_0+16];", "%rd1", "", ("kernel_param_0", 16)),
        ("st.shared.v2.f32 [%r7+4], {%f1, %f2};", "", "%r7 %f1 %f2", ("%r7", 4)),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r1};", "", "%r4 %r1", ("%r4", 0)),
        ("sust.b.2d.b32.trap [image, {%r4, 0}], %r1;", "", "%r4 %r1", None),
        ("brx.idx %r1, cases;", "", "%r1", None),
        ("bar.red.popc.u32 %r1, 0, %p2;", "%r1", "%p2", None),
        ("mov.b32 %v.x, %smid;", "%v", "", None),
        ("@P0 LDG.E R2, [R4+0x8];", "", "", None),
        ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;", "", "", None),
        ("", "", "", None),
    ],
)
def test_the_operands_of_a_text_are_those_of_the_parser(
    text: str, writes: str, reads: str, address: tuple[str, int] | None
) -> None:
    expected = Operands(tuple(writes.split()), tuple(reads.split()), address)
    assert read_operands(text) == expected


def test_nothing_passes_a_barrier() -> None:
    barrier = Step(1, Operands((), ()), 20, 1.0, "barrier", is_barrier=True)
    code = {0: [step("a", "", 100), step("b", "a", 4), barrier, step("c", "", 4)]}
    assert cycles(code, (0, 1)) == 100 + 20 + 1
    assert run_chain([(0, 1)], code).stalls["barrier"] == 20


def test_an_empty_kernel_takes_what_was_measured_of_one(trace: Path) -> None:
    found = on(trace, 0).estimate
    assert found is not None
    assert found.ns == pytest.approx(1792, abs=20)  # measured/sm_90.csv, empty_base
    assert estimate_text(found).startswith("about 1.79 us at 1,500 MHz (")


def test_a_chain_of_loads_takes_a_way_to_memory_for_each(trace: Path) -> None:
    measured = load_measured(load_device("h200"))
    assert measured is not None
    hop = measured.dram_cycles(1500) / 1.5
    short, long = (on(trace, number).estimate for number in (1, 2))
    assert short is not None
    assert long is not None
    assert long.ns - short.ns == pytest.approx(HOPS * hop, rel=0.25)
    assert next(iter(long.stalls)) == "memory"
    assert on(trace, 2).counters["estimated_time"] == pytest.approx(long.ns, abs=0.001)


def test_the_profilers_names_have_the_estimated_throughputs(trace: Path) -> None:
    launch = on(trace, 2)
    assert launch.estimate is not None
    share = "throughput.avg.pct_of_peak_sustained_elapsed"
    told = {"SM": "sm__", "L1": "l1tex__", "L2": "lts__", "DRAM": "dram__"}
    for unit, name in told.items():
        expected = 100 * launch.estimate.busy[unit]
        assert launch.counters[name + share] == pytest.approx(expected, abs=1e-4)
    assert launch.counters["gpu__dram_" + share] == launch.counters["dram__" + share]
    assert launch.counters["gpu__time_duration.sum"] == launch.counters["estimated_time"]
    assert launch.estimate.busy["SM"] > 0


def test_json_tells_what_a_warp_waits_for_line_by_line(trace: Path) -> None:
    launch = json.loads(render(analyze(trace, "h200"), "json"))["launches"][2]
    (device,) = launch["devices"]
    told = device["estimate"]
    assert told["lines"][0]["stall"] == "long_scoreboard"
    assert (told["lines"][0]["file"], told["lines"][0]["line"]) == ("source.cu", 7)
    assert sum(line["share"] for line in told["lines"]) == pytest.approx(
        sum(told["waits"].values())
    )


def test_float_atomics_at_one_address_take_a_turn_for_each_lane(trace: Path) -> None:
    (bound, *_), found = on(trace, 3).bounds, on(trace, 3).estimate
    assert (bound.resource, bound.amount) == ("atomics at one address", 256 * 32)
    assert bound.ns == pytest.approx(256 * 32 / (0.29 * 1.98))  # 0.287 measured: red_add_f32_one
    assert found is not None
    assert found.ns > bound.ns


def test_a_device_that_nobody_measured_has_bounds_alone(trace: Path) -> None:
    launch = on(trace, 2, "gtx1080")
    assert launch.bounds
    assert (launch.estimate, launch.counters["estimated_time"]) == (None, None)

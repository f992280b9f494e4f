"""`cutrace judge`: each verdict and each cause of a broken candidate, by the smallest kernel."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.comparison.judgement import Judgement, Tolerance, compare_values
from cutrace.analyzer.counting.bounds import time_text
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.commands.options.selection import Reading

LAUNCH = "// cutrace: k<<<1, 32>>>(out:f32[32], in:f32[32]=arange)\n"
REFERENCE = "  out[threadIdx.x] = 2 * in[threadIdx.x];\n"


def kernel(body: str, launch: str = LAUNCH, before: str = "") -> str:
    return f"{before}__global__ void k(float* out, const float* in) {{\n{body}}}\n{launch}"


TRANSPOSED = """__global__ void scale(float* out, const float* in, int n) {
  int row = blockIdx.%s * blockDim.%s + threadIdx.%s;
  int column = blockIdx.%s * blockDim.%s + threadIdx.%s;
  out[row * n + column] = 2 * in[row * n + column];
}
// cutrace: scale<<<(16, 64), (32, 8)>>>(out:f32[512,512], in:f32[512,512]=random:1, 512)
"""
SLOW, FAST = TRANSPOSED % (*"xxxyyy",), TRANSPOSED % (*"yyyxxx",)
"""Lanes of a warp in one column, 2 KiB apart; and in one row."""

BROKEN = {
    "build": (kernel("  out[threadIdx.x] = wrong;\n"), 2),
    "launch": (kernel(REFERENCE, launch=""), None),
    "endless": (kernel("  for (float v = 0;; v += in[1]) out[threadIdx.x] = v;\n"), 2),
    "waiting": (kernel("  while (*(volatile float*)in == 0);\n"), 2),
    "outside": (kernel("  out[threadIdx.x + 1] = 2 * in[threadIdx.x];\n"), 2),
    "misaligned": (kernel("  *(float2*)(out + 1) = *(const float2*)in;\n"), 2),
    "uninitialized": (kernel("  out[threadIdx.x] = out[31 - threadIdx.x];\n"), 2),
    "output": (kernel("  out[threadIdx.x] = 3 * in[threadIdx.x];\n"), None),
    "assertion": (kernel("  assert(in[threadIdx.x] < 5);\n", before="#include <cassert>\n"), 3),
}
"""A candidate by cause, and the source line of the error."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(kernel(REFERENCE))
    return tmp_path


def judged(after: str, **options: Any) -> Judgement:
    Path("b.cu").write_text(after)
    return cutrace.judge("a.cu", "b.cu", **options)


@pytest.mark.parametrize(("cause", "after", "line"), [(c, *each) for c, each in BROKEN.items()])
def test_a_broken_candidate_says_why(
    cause: str, after: str, line: int | None, folder: Path
) -> None:
    judgement = judged(after)
    assert (judgement.verdict, judgement.cause) == ("broken", cause), judgement.reason
    assert judgement.exit_status == 1
    assert judgement.reason.startswith("b ")
    error = judgement.after.error
    assert (error["line"] if error else None) == line


def test_a_race_is_broken_with_both_lines(folder: Path) -> None:
    launch = LAUNCH.replace("32>>>", "64>>>").replace("[32]", "[64]")
    body = "  __shared__ float s[64];\n  s[threadIdx.x] = in[threadIdx.x];\n%s"
    body += "  out[threadIdx.x] = s[63 - threadIdx.x];\n"
    Path("a.cu").write_text(kernel(body % "  __syncthreads();\n", launch))
    judgement = judged(kernel(body % "", launch))
    assert (judgement.verdict, judgement.cause) == ("broken", "race")
    (race,) = judgement.after.races
    assert (race["file"], race["line"], race["other_line"]) == ("b.cu", 3, 4)


def test_a_line_that_races_with_itself_is_named_once(folder: Path) -> None:
    launch = LAUNCH.replace("32>>>", "64>>>").replace("[32]", "[64]")
    body = "  __shared__ float s;\n  s = in[threadIdx.x];\n  __syncthreads();\n"
    judgement = judged(kernel(f"{body}  out[threadIdx.x] = s;\n", launch))  # two warps store s
    (race,) = judgement.after.races
    assert "b.cu:3 (store) with itself (store), no barrier between" in race["message"]


LONG = """  unsigned v = 0;
  for (unsigned long long i = 1; i; ++i) v ^= (unsigned)in[(v ^ i) & 31] * 7u;
  out[threadIdx.x] = v;
"""
"""A loop of 2^64 rounds, of which no one can tell beforehand that it is too long."""


@pytest.mark.parametrize("large", [False, True])
def test_a_candidate_that_runs_too_long_ends_at_the_limit_of_time(
    large: bool, folder: Path
) -> None:
    launch = LAUNCH.replace("<<<1,", "<<<2048,") if large else LAUNCH
    Path("a.cu").write_text(kernel(REFERENCE, launch))
    cutrace.judge("a.cu", "a.cu")  # compiled and kept, whatever that takes
    start = time.process_time()
    judgement = judged(kernel(LONG, launch), seconds=2.0)
    assert judgement.cause == "endless"
    assert "longer than 2 s of processor time, the limit" in judgement.reason
    assert time.process_time() - start < 10
    assert judged(kernel(REFERENCE, launch), seconds=60).verdict == "same"


def test_a_candidate_that_runs_too_long_ends_at_the_limit_of_instructions(folder: Path) -> None:
    Path("b.cu").write_text(kernel(LONG))
    status = run(["judge", "a.cu", "b.cu", "--max-instructions", "10000"])
    assert status == 1
    judgement = cutrace.judge("a.cu", "b.cu", recording=Reading(max_instructions=10000))
    assert judgement.cause == "endless"
    assert judgement.after.error is not None
    assert judgement.after.error["line"] == 3


def test_the_result_of_the_reference_is_not_there_for_the_candidate(folder: Path) -> None:
    cutrace.judge("a.cu", "a.cu")
    address = 0x700000000
    body = f"  out[threadIdx.x] = ((float*){address:#x}ull)[threadIdx.x];\n"
    assert judged(kernel(body)).cause == "uninitialized"
    far = f"  out[threadIdx.x] = ((float*){address + (1 << 20):#x}ull)[threadIdx.x];\n"
    assert judged(kernel(far)).cause == "outside"


def test_a_reference_that_reads_what_nobody_wrote_sets_the_measure(folder: Path) -> None:
    Path("a.cu").write_text(kernel("  out[threadIdx.x] += in[threadIdx.x];\n"))
    judgement = judged(kernel("  out[threadIdx.x] = out[threadIdx.x] + in[threadIdx.x];\n"))
    assert judgement.verdict == "same"
    assert "loads of bytes that nobody wrote were not looked for" in judgement.notes


def test_faster_slower_and_same_follow_the_interval_of_the_ratio(folder: Path) -> None:
    Path("a.cu").write_text(SLOW)
    faster = judged(FAST)
    assert (faster.verdict, faster.exit_status, faster.same_output) == ("faster", 0, True)
    assert faster.difference is not None
    assert faster.difference.low > 1
    Path("a.cu").write_text(FAST)
    slower = judged(SLOW)
    assert (slower.verdict, slower.exit_status) == ("slower", 1)
    assert [(f["rule"], f["file"], f["line"]) for f in slower.after.findings] == [
        ("uncoalesced", "b.cu", 4)
    ]
    same = judged(
        FAST.replace("2 * in", "in").replace("[row * n + column];", "[row * n + column] * 2;")
    )
    assert (same.verdict, same.exit_status) == ("same", 0)
    assert same.reason.startswith("no difference beyond the error")


def test_without_an_estimate_counts_decide_and_a_bound_never_does(folder: Path) -> None:
    Path("a.cu").write_text(SLOW)
    judgement = judged(FAST, device="gtx1080")
    assert (judgement.verdict, judgement.basis) == ("faster", "counts")
    assert "there is no estimate on gtx1080" in judgement.reason
    assert "global transactions 8 times less" in judgement.reason
    assert judged(SLOW, device="gtx1080").verdict == "same"


def test_equal_input_gives_equal_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.cu").write_text(kernel("  out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x];\n"))
    texts = []
    for _ in range(2):
        assert run(["judge", "a.cu", "b.cu", "--format", "json"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["format"] == "cutrace-judge-1"


def test_a_changed_header_or_array_is_judged_anew(folder: Path) -> None:
    source = kernel(
        "  out[threadIdx.x] = FACTOR * in[threadIdx.x];\n",
        LAUNCH.replace("arange", "in.npy"),
        '#include "factor.h"\n',
    )
    Path("a.cu").write_text(source)
    np.save("in.npy", np.ones(32, np.float32))
    for factor, value in ((2, 1.0), (3, 1.0), (3, 5.0)):
        Path("factor.h").write_text(f"#define FACTOR {factor}\n")
        np.save("in.npy", np.full(32, value, np.float32))
        judgement = judged(source)
        assert judgement.after.arrays is not None
        assert judgement.after.arrays["out"][0] == factor * value


def test_expected_values_replace_those_of_the_reference(folder: Path) -> None:
    three = kernel("  out[threadIdx.x] = 3 * in[threadIdx.x];\n")
    right = 3 * np.arange(32)
    assert judged(three, expect={"out": right}).verdict == "same"
    wrong = judged(three, expect={"out": right + (right == 30)})
    assert (wrong.cause, wrong.outputs[0].differing) == ("output", 1)  # type: ignore[index]
    assert "`out` differs in 1 of 32: [10] is 30.0, expected 31" in wrong.reason
    np.save("other_name.npy", right)
    Path("b.cu").write_text(three)
    assert run(["judge", "a.cu", "b.cu", "--expect", "other_name.npy"]) == 0
    np.save("short.npy", right[:5])
    assert run(["judge", "a.cu", "b.cu", "--expect", "short.npy"]) == 2
    assert run(["judge", "a.cu", "b.cu", "--expect", "out=short.npy"]) == 1
    assert run(["judge", "a.cu", "b.cu", "--expect", "missing.npy"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--expect", "y=short.npy"), "b writes no array `y`, nor a single one with 5 elements"),
        (("--size", "n=3"), "--size is for a problem of KernelBench"),
        (("--memory", "1G"), "--memory is for a problem of KernelBench"),
        (("--kernels", "nosuch"), "fails: a: --kernels nosuch: no kernel's name matches; it has k"),
    ],
)
def test_an_option_that_does_not_fit_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], message: str
) -> None:
    Path("b.cu").write_text(kernel(REFERENCE))
    np.save("short.npy", np.zeros(5, dtype=np.float32))
    assert run(["judge", "a.cu", "b.cu", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_floats_agree_within_the_tolerance(folder: Path) -> None:
    nearly = kernel("  out[threadIdx.x] = 2.0001f * in[threadIdx.x];\n")
    assert judged(nearly).verdict == "same"
    assert judged(nearly, rtol=1e-6, atol=0.0).cause == "output"
    off = kernel("  out[threadIdx.x] = 2.01f * in[threadIdx.x];\n")
    assert judged(off).cause == "output"
    assert judged(off, rtol=0.1).verdict == "same"
    with pytest.raises(CutraceError, match="rtol is -1"):
        judged(off, rtol=-1.0)


def test_nan_agrees_with_nan_only(folder: Path) -> None:
    nan = '  out[threadIdx.x] = threadIdx.x == %d ? nanf("") : in[threadIdx.x];\n'
    Path("a.cu").write_text(kernel(nan % 3))
    assert judged(kernel(nan % 3)).verdict == "same"
    assert judged(kernel(nan % 4)).outputs[0].differing == 2  # type: ignore[index]


def test_an_array_that_the_candidate_does_not_have_is_another_output(folder: Path) -> None:
    judgement = judged(kernel(REFERENCE, LAUNCH.replace("out:", "result:")))
    assert judgement.cause == "output"
    assert "`out`: b has no array of this name" in judgement.reason


def test_what_neither_kernel_writes_is_no_output(folder: Path) -> None:
    launch = LAUNCH.replace("arange)", "arange, scratch:f32[%d]=arange)")
    text = kernel(REFERENCE, launch).replace("* in)", "* in, float* scratch)")
    Path("a.cu").write_text(text % 32)
    judgement = judged(text % 64)
    assert judgement.verdict == "same"
    assert [output.array for output in judgement.outputs or ()] == ["out"]


ADD = kernel("  out[threadIdx.x] += in[threadIdx.x];\n")
SPLIT = kernel(REFERENCE, f"{LAUNCH}// cutrace: k<<<1, 32>>>(out, in:f32[32]=random:1)\n")
INPUTS = {
    "fill": (kernel(REFERENCE), "in:f32[32]=arange", "in:f32[32]=random:1", "in"),
    "zeros": (kernel(REFERENCE), "in:f32[32]=arange", "in:f32[32]=zeros", "in"),
    "shape": (kernel(REFERENCE), "in:f32[32]=arange", "in:f32[64]=arange", "in"),
    "sum": (ADD, "out:f32[32]", "out:f32[32]=arange", "out"),
    "second_launch": (SPLIT, "=random:1", "=random:2", "in"),
}
"""A reference, what its launch lines say, what those of the candidate say, the array."""


@pytest.mark.parametrize(("text", "old", "new", "array"), INPUTS.values(), ids=INPUTS)
def test_launches_with_different_inputs_are_not_compared(
    text: str, old: str, new: str, array: str, folder: Path
) -> None:
    Path("a.cu").write_text(text)
    assert old in text
    for _ in range(2):  # the second time from the cache
        judgement = judged(text.replace(old, new))
        assert (judgement.verdict, judgement.cause) == ("broken", "launch")
        assert judgement.reason == f"the launches have different inputs: `{array}`"
        assert judgement.document()["ratio"] is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in:f32[32]=", "in:f32[4,8]="),
        ("out:f32[32]", "out:f32[32]=zeros"),
        ("out:f32[32]", "out:f32[32]=arange"),
        ("in:f32[32]=arange", "in:f32[32]=count.npy"),
    ],
)
def test_equal_inputs_may_be_written_differently(old: str, new: str, folder: Path) -> None:
    np.save("count.npy", np.arange(32, dtype=np.float32))
    judgement = judged(kernel(REFERENCE, LAUNCH.replace(old, new)))
    assert judgement.verdict == "same", judgement.reason


def test_the_largest_error_is_told_also_within_the_tolerance(folder: Path) -> None:
    (equal,) = judged(kernel(REFERENCE)).document()["outputs"]
    assert equal["largest_error"] == 0.0
    nearly = kernel("  out[threadIdx.x] = 2 * in[threadIdx.x] + (threadIdx.x == 9) / 1024.f;\n")
    (output,) = judged(nearly, rtol=0.0, atol=0.01).document()["outputs"]
    assert (output["same"], output["largest_error"]) == (True, 2.0**-10)
    assert (output["rtol"], output["atol"]) == (0.0, 0.01)
    (output,) = judged(nearly, rtol=0.0, atol=0.0).document()["outputs"]
    assert (output["differing"], output["largest_error"]) == (1, 2.0**-10)
    (output,) = judged(nearly).document()["outputs"]
    # half the digits of a float, and 100 units of the root mean square of 0, 2, ..., 62
    mean = np.sqrt(np.mean((2.0 * np.arange(32)) ** 2))
    assert output["rtol"] == pytest.approx(2**-11.5)
    assert output["atol"] == pytest.approx(100 * 2.0**-23 * mean)


@pytest.mark.parametrize(
    ("values", "reference", "error"),
    [
        ([float("nan"), float("inf"), 1.5], [float("nan"), float("inf"), 1.0], 0.5),
        ([float("inf")], [1.0], None),
        ([], [], 0.0),
        (np.array([2**62 + 1]), np.array([2**62]), 1.0),
        (np.array([-(2**63)]), np.array([2**63 - 1]), 2.0**64),
        (np.array([True]), np.array([False]), 1.0),
        (np.array([3 + 4j]), np.array([0j]), 5.0),
        (np.array([(1,)], "i4,"), np.array([(1,)], "i4,"), 0.0),
        (np.array([(1,)], "i4,"), np.array([(2,)], "i4,"), None),
    ],
)
def test_the_largest_error_of_special_values(values: Any, reference: Any, error: Any) -> None:
    output = compare_values("x", np.asarray(values), np.asarray(reference), Tolerance())
    assert output.largest_error == error


def test_a_broken_verdict_has_no_ratio_and_unchecked_loads_are_null(folder: Path) -> None:
    broken = judged(BROKEN["output"][0]).document()
    assert (broken["ratio"], broken["ratio_interval"]) == (None, None)
    assert broken["after"]["estimate_ns"] is not None
    assert (broken["before"]["initialized"], broken["after"]["initialized"]) == (True, True)
    assert judged(BROKEN["build"][0]).document()["after"]["initialized"] is None
    Path("a.cu").write_text(ADD)
    unset = judged(ADD).document()
    assert (unset["before"]["initialized"], unset["after"]["initialized"]) == (False, None)


def test_a_judgement_tells_that_races_in_global_memory_are_not_looked_for(folder: Path) -> None:
    note = "races in global memory are not looked for"
    racy = kernel("  out[threadIdx.x] = 2 * in[threadIdx.x];\n", LAUNCH.replace("<<<1,", "<<<2,"))
    judgement = judged(racy)
    assert note in judgement.notes
    assert note in str(judgement)
    assert note not in judged(BROKEN["build"][0]).notes


def test_a_finding_says_what_it_saves_of_the_estimate_and_of_the_bound(folder: Path) -> None:
    Path("a.cu").write_text(SLOW)
    judgement = judged(SLOW)
    (finding,) = judgement.document()["findings"]
    now = judgement.document()["after"]["estimate_ns"]
    assert 0 < finding["estimate_ns"] < now
    assert finding["saved_ns"] == pytest.approx(now - finding["estimate_ns"])
    assert f"(gains {time_text(finding['saved_ns'])})" in str(judgement)
    advice = cutrace.advise("a.cu")[0][1]
    assert (finding["gain_ns"], finding["estimate_ns"]) == (advice.gain, advice.estimate)
    findings = judged(SLOW, device="gtx1080").document()["findings"]
    assert findings
    assert {(one["estimate_ns"], one["saved_ns"]) for one in findings} == {(None, None)}
    strided = kernel(
        "  out[threadIdx.x] = in[threadIdx.x * 32];\n", LAUNCH.replace("32]=", "1024]=")
    )
    Path("a.cu").write_text(strided)
    document = judged(strided, device="gtx1080").document()
    (finding,) = document["findings"]
    assert 0 < finding["gain_ns"] < document["after"]["bound_ns"]
    assert finding["saved_ns"] is None


def test_counts_that_contradict_each_other_decide_nothing(folder: Path) -> None:
    more = FAST.replace("out[row", "for (int i = 0; i < n; i += 8) __nanosleep(0);\n  out[row")
    Path("a.cu").write_text(SLOW)
    mixed = judged(more, device="gtx1080")
    assert (mixed.verdict, mixed.undecided) == ("same", True)
    assert mixed.reason.startswith("undecided: there is no estimate on gtx1080, and by counts no")
    assert mixed.document()["undecided"] is True
    equal = judged(SLOW, device="gtx1080")
    assert (equal.verdict, equal.undecided) == ("same", False)
    assert "undecided" not in equal.reason


def test_a_program_is_judged_by_its_exit_status(folder: Path) -> None:
    main = "#include <cstdlib>\nint main(int count, char** words) {\n  float* p;\n"
    main += "  cudaMalloc(&p, 256);\n  k<<<1, 32>>>(p, p);\n  cudaDeviceSynchronize();\n"
    text = kernel("  out[threadIdx.x] = 1;\n", main)
    Path("a.cu").write_text(f"{text}  return 0;\n}}\n")
    judgement = judged(f"{text}  return atoi(words[1]);\n}}\n", program=("3",))
    assert (judgement.verdict, judgement.cause) == ("broken", "program")
    assert "it ended with exit status 3" in judgement.reason
    Path("b.cu").write_text(f"{text}  return atoi(words[1]);\n}}\n")
    assert cutrace.judge("a.cu", "b.cu", program=("0",)).verdict == "same"


def test_traces_have_no_values_to_compare(folder: Path) -> None:
    Path("b.cu").write_text(kernel(REFERENCE))
    for name in "ab":
        cutrace.record(f"{name}.cu")
    judgement = cutrace.judge("a.cutrace", "b.cutrace")
    assert (judgement.verdict, judgement.same_output) == ("same", None)
    assert "output not compared: a trace has no values" in str(judgement)


def test_a_script_with_a_session_is_compared_by_its_arrays(folder: Path) -> None:
    script = """import cutrace, numpy
with cutrace.Session() as gpu:
    k = gpu.compile("__global__ void k(float* x) { x[threadIdx.x] = %d; }").get_function("k")
    k[1, 32](gpu.device_array(32, "float32", "x"))
"""
    for name, value in (("one", 1), ("two", 2)):
        Path(f"{name}.py").write_text(script % value)
    assert cutrace.judge("one.py", "two.py").cause == "output"
    assert cutrace.judge("one.py", "one.py").verdict == "same"


@pytest.mark.parametrize(
    "words",
    [
        ["judge", "missing.cu", "a.cu"],
        ["judge", "a.cu", "missing.cu"],
        ["judge", "bad.cu", "a.cu"],
        ["judge", "a.cu", "a.cu", "-d", "no_such_device"],
        ["judge", "a.cu", "a.cu", "-d", "h100,h200"],
        ["judge", "a.cu", "a.cu", "--format", "xml"],
        ["judge", "a.cu"],
    ],
    ids=" ".join,
)
def test_wrong_usage_and_a_failing_reference_have_status_2(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.cu").write_text(BROKEN["build"][0])
    assert run(words) == 2
    assert capsys.readouterr().out == ""


def test_a_failing_reference_is_told_as_such(folder: Path) -> None:
    Path("bad.cu").write_text(BROKEN["build"][0])
    with pytest.raises(CutraceError, match="the reference bad fails") as problem:
        cutrace.judge("bad.cu", "a.cu")
    assert problem.value.kind == "build"


def test_a_round_of_edit_and_judge_takes_less_than_a_second_of_cpu(folder: Path) -> None:
    Path("a.cu").write_text(SLOW)
    judged(FAST)
    rounds = 3
    start = os.times()
    for number in range(rounds):
        judged(FAST.replace("2 * in", f"{number + 3} * in"))
    end = os.times()
    seconds = sum(end[:4]) - sum(start[:4])
    assert seconds / rounds < 1.0

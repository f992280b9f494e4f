"""All questions take a program; a trace of many launches is shown by kernel."""

import re
from pathlib import Path

import pytest
from program_run import HEAD, cutrace

pytest_plugins = ["pytester"]

SOURCE = (
    HEAD
    + """
#ifndef STRIDE
#define STRIDE 1
#endif
__global__ void read(float *out, const float *in) { out[threadIdx.x] = in[STRIDE * threadIdx.x]; }
__global__ void write(float *out, int i) { out[threadIdx.x + 32 * i] = i; }
int main(int count, char **words)
{
    float *in, *out;
    CHECK(cudaMalloc(&in, 4096));
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMemset(in, 0, 4096));
    for (int i = 0; i < atoi(words[1]); i++) {
        read<<<1, 32>>>(out, in);
        write<<<1, 32>>>(out, i % 2);
    }
    puts("the program's own words");
}
"""
)
BUDGET = """
[[budget]]
kernel = "read"
global_load_transactions = 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two builds of a program, which read near and far, and with a budget."""
    place = tmp_path_factory.mktemp("programs")
    (place / "app.cu").write_text(SOURCE)
    (place / "budget.toml").write_text(BUDGET)
    for name, options in (("near", ()), ("far", ("-DSTRIDE=8",))):
        built = cutrace(place, "nvcc", "app.cu", "-o", name, *options)
        assert built.status == 0, built.err
    return place


def test_analyze_takes_a_program_and_its_output_is_not_in_the_answer(folder: Path) -> None:
    words = ("--counters", "global_load_transactions", "--format", "csv", "-d", "h200")
    done = cutrace(folder, "analyze", *words, "--", "./far", "1")
    assert done.status == 0, done.err
    assert [line.split(",")[-1] for line in done.out.splitlines()] == ["value", "32", "0"]
    assert done.err == "the program's own words\n"


def test_a_budget_takes_a_program(folder: Path) -> None:
    words = ("check", "--budget", "budget.toml", "-d", "h200", "--")
    assert cutrace(folder, *words, "./near", "1").status == 0
    broken = cutrace(folder, *words, "./far", "1")
    assert broken.status == 1
    assert "global_load_transactions" in broken.err + broken.out


def test_two_builds_are_compared(folder: Path) -> None:
    words = ("--counters", "global_load_transactions", "--format", "csv", "-d", "h200")
    done = cutrace(folder, "compare", "./near", "./far", *words, "--", "1")
    assert done.status == 0, done.err
    rows = [line.split(",") for line in done.out.splitlines()]
    found = {(row[1], row[5]): row[7] for row in rows[1:]}  # launch, variant: value
    assert found == {("0", "near"): "4", ("0", "far"): "32", ("1", "near"): "0", ("1", "far"): "0"}


def test_a_report_takes_a_program(folder: Path) -> None:
    done = cutrace(folder, "report", "-o", "page.html", "--", "./near", "2")
    assert done.status == 0, done.err
    assert "read(float *out" in (folder / "page.html").read_text()


def test_many_launches_are_shown_by_kernel_and_one_by_its_number(folder: Path) -> None:
    recorded = cutrace(folder, "record", "-o", "app.cutrace", "--", "./near", "10")
    assert recorded.status == 0, recorded.err
    info = cutrace(folder, "info", "app.cutrace").out
    assert "20 of 2 kernels; --launch N shows one in full" in info
    assert "10, 2 of them different, the first is number 1, the last 19" in info
    shown = cutrace(folder, "analyze", "app.cutrace", "-d", "h200").out.splitlines()
    assert shown[0].startswith("20 launches of 2 kernels, the costliest first")
    cells = [re.split("  +", line) for line in shown[2:6] if line]
    table = {row[0]: row for row in cells}
    at = table["h200"].index("global_bytes_transferred")
    # a read moves 128 bytes in and 128 out, a write 128 out: 10 of each
    assert (table["read"][:3], table["read"][at]) == (["read", "10", "1"], "2,560")
    assert (table["write"][:3], table["write"][at]) == (["write", "10", "2"], "1,280")
    assert shown[-1] == "next: cutrace analyze app.cutrace -d h200 --launch 0"
    one = cutrace(folder, "analyze", "app.cutrace", "--launch", "3", "--counters", "instructions")
    assert "write<<<1, 32>>>(out, i=1)" in one.out
    assert "read<<<" not in one.out
    none = cutrace(folder, "analyze", "app.cutrace", "--launch", "20")
    assert (none.status, none.out) == (2, "")
    assert "there is no launch 20: it has launches 0 to 19" in none.err


def test_what_is_repeated_has_its_own_number_and_the_counters_of_the_first(folder: Path) -> None:
    from cutrace import analyze

    cutrace(folder, "record", "-o", "app.cutrace", "--", "./near", "3")
    launches = analyze(folder / "app.cutrace", "h200").launches
    assert [one.number for one in launches] == list(range(6))
    assert [one.origin.number for one in launches] == [0, 1, 0, 3, 0, 1]
    assert [a.value for a in launches[5].launch.arguments] == ["out", 0]
    assert launches[4].counters["instructions"] == launches[0].counters["instructions"]
    assert launches[0].counters["instructions"]


def test_a_program_that_is_not_there_is_one_message(folder: Path) -> None:
    done = cutrace(folder, "analyze", "--", "./nowhere")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cutrace: ./nowhere: there is no such program")


def test_a_program_that_launches_nothing_has_nothing_to_count(folder: Path) -> None:
    done = cutrace(folder, "analyze", "--", "./near", "0")
    assert done.status == 2
    assert "launched no kernel" in done.err


def test_the_fixture_holds_a_program_to_numbers(folder: Path, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        def test_near(cutrace_program):
            done = cutrace_program({str(folder / "near")!r}, "2")
            assert (done.status, done.launches, done.refused) == (0, 4, 0)
            done.assert_budget("read", {{"global_load_transactions": 4}}, "h200")

        def test_far(cutrace_program):
            done = cutrace_program({str(folder / "far")!r}, "1")
            done.assert_budget("read", {{"global_load_transactions": 4}}, "h200")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*global_load_transactions*32*"])


def test_a_trace_in_no_folder_is_refused_before_the_program_is_built(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text("not C++")
    done = cutrace(tmp_path, "record", "app.cu", "-o", "nowhere/x.cutrace", "--")
    assert done.status == 2
    assert "there is no folder nowhere" in done.err

"""`cutrace check --budget`: a number that grew fails, and says where and why."""

import re
import tomllib
from pathlib import Path

import pytest

from cutrace.commands._main import run

Captured = pytest.CaptureFixture[str]

TURN = """\
// cutrace: turn<<<(4, 2), (32, 32)>>>(out:f32[128,64], in:f32[64,128]=arange, 128, 64)
__global__ void turn(float *out, const float *in, int width, int height)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
"""
READ = "turn.cu:11"
REQUESTS = 8 * 32
"""8 blocks of 32 warps."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the kernel in `turn.cu`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    (tmp_path / "turn.cu").write_text(TURN)
    return tmp_path


def budget(*lines: str, head: str = 'devices = ["h200"]') -> None:
    """Write `budget.toml` with one entry for the kernel."""
    text = "\n".join((head, "[[budget]]", 'kernel = "turn"', *lines))
    Path("budget.toml").write_text(text)


def check(pad: int, *more: str) -> int:
    return run(["check", "turn.cu", f"-DPAD={pad}", "--budget", "budget.toml", *more])


def test_a_tile_that_loses_its_padding_breaks_its_budget_and_one_that_has_it_does_not(
    capsys: Captured,
) -> None:
    budget("shared_conflicts = 0")
    assert check(1) == 0
    assert capsys.readouterr().out == (
        "budget  counter           device  launch  value  may be\n"
        "turn    shared_conflicts  h200    0       0      not more than 0\n\n"
        "next: cutrace analyze turn.cu -DPAD=1\n"
    )
    assert check(0) == 1
    assert capsys.readouterr().err == (
        "cutrace: budget.toml: 1 of 1 limits broken\n\n"
        f"{READ}  out[y * height + x] = tile[threadIdx.x][threadIdx.y];\n"
        # each of 256 columns takes 32 passes, one needed
        f"  shared_conflicts of turn on h200: {REQUESTS * 31}, budget: not more than 0\n"
        "  in launch 0, turn<<<(4, 2), (32, 32)>>>(out, in, width=128, height=64)\n"
        "  lanes 0 to 31 conflict in bank 0: 32 wavefronts, 1 needed\n"
    )


def test_a_budget_may_be_the_least_time(capsys: Captured) -> None:
    budget("bound_time = 500")
    assert check(1) == 0
    capsys.readouterr()
    assert check(0) == 1
    # each of 256 warps stores in one pass and loads in 32, on 8 SMs at 1.98 GHz: 8448 passes
    told = capsys.readouterr().err
    assert f"bound_time of turn on h200: {256 * 33 / 8 / 1.98:.3f}, " in told
    assert (
        f"  limited by shared memory: at least 533 ns for {256 * 33:,} wavefronts; next: " in told
    )


def test_a_budget_may_be_an_estimate_of_the_time(capsys: Captured) -> None:
    budget("estimated_time = 1792")  # what an empty kernel takes: measured/sm_90.csv
    assert check(1) == 1
    told = capsys.readouterr().err
    assert "estimated_time of turn on h200: " in told
    assert " at 1,500 MHz (" in told
    budget("estimated_time = 1000000")
    assert check(1) == 0


@pytest.mark.parametrize(
    ("limit", "holds"),
    [
        (f"shared_conflicts = {REQUESTS * 31}", True),
        (f"shared_conflicts = {REQUESTS * 31 - 1}", False),
        (f'shared_conflicts = "<= {REQUESTS * 31}"', True),
        (f'shared_conflicts = "< {REQUESTS * 31}"', False),
        (f'shared_conflicts = "== {REQUESTS * 31}"', True),
        ('shared_conflicts = "> 1e6"', False),
        ('global_load_bytes_requested = "== 32 KiB"', True),  # 128 * 64 words of 4 bytes
        ('global_load_bytes_requested = "< 32K"', False),
        ('sector_efficiency = ">= 1.0"', True),
        ('sector_efficiency = "< 1"', False),
        ('"global_load_transactions / global_load_requests" = 4', True),
        ('"global_load_transactions / global_load_requests" = 3.99', False),
        (
            '"shared_wavefronts - shared_conflicts" = 512',
            True,
        ),  # a store and a load for each request
        ('"constant_wavefronts / constant_requests" = 0', True),  # nothing to divide
        ('"GREATEST(shared_conflicts, 9000)" = 8999', False),
    ],
)
def test_counters_and_expressions_are_held_to_numbers_and_comparisons(
    limit: str, holds: bool
) -> None:
    budget(limit)
    assert check(0) == (0 if holds else 1)


@pytest.mark.parametrize(
    ("place", "limit", "holds"),
    [
        (f'line = "{READ}"', "shared_conflicts = 0", False),
        ('line = "turn.cu:7"', "shared_conflicts = 0", True),
        ('line = "tile[threadIdx.x][threadIdx.y]"', "shared_conflicts = 0", False),
        ('line = "= in[y"', "global_load_transactions = 1024", True),
        ('line = "= in[y"', "global_load_transactions = 1023", False),
        ('line = "turn.cu:1"', "global_load_transactions = 0", True),  # no instruction
        ('array = "tile"', "shared_conflicts = 0", False),
        ('array = "in"', "global_store_transactions = 0", True),
        ('array = "out"', "global_store_transactions = 1023", False),
    ],
)
def test_a_line_or_an_array_has_a_budget_of_its_own(place: str, limit: str, holds: bool) -> None:
    budget(place, limit)
    assert check(0) == (0 if holds else 1)


def test_a_broken_array_names_the_line_that_costs_most(capsys: Captured) -> None:
    budget('array = "tile"', "shared_wavefronts = 100")
    assert check(0) == 1
    err = capsys.readouterr().err
    assert f"\n{READ}  out[y * height" in err
    passes = REQUESTS + REQUESTS * 32
    assert f"shared_wavefronts of turn in array tile on h200: {passes}, budget: not more" in err


def test_a_broken_ratio_names_the_line_that_moves_most(capsys: Captured) -> None:
    Path("turn.cu").write_text(TURN.replace("out[y * height + x]", "out[(y * height + x) / 2 * 2]"))
    budget('global_store_sector_efficiency = ">= 1"')
    assert check(1) == 1
    err = capsys.readouterr().err
    assert f"{READ}  out[(y * height + x) / 2 * 2]" in err
    assert "global_store_sector_efficiency of turn on h200: 0.5, budget: not less than 1" in err


def test_numbers_may_belong_to_one_device(capsys: Captured) -> None:
    two = 'devices = ["gtx580", "h200"]'
    # a row of 32 floats is a line of 128 bytes on 2.x, and 4 sectors on 9.0
    budget('device = "gtx580"', f"global_load_transactions = {REQUESTS}", head=two)
    assert check(0) == 0
    assert "h200" not in capsys.readouterr().out
    budget(f"global_load_transactions = {REQUESTS}", head=two)
    assert check(0) == 1
    assert f"on h200: {REQUESTS * 4}" in capsys.readouterr().err
    assert check(0, "-d", "gtx580") == 0


def test_another_compiler_is_said_first(capsys: Captured) -> None:
    head = 'devices = ["h200"]\ncompiler = "nvrtc 11.8, compute_75"'
    budget("shared_conflicts = 0", head=head)
    assert check(1) == 0
    assert "nvrtc" not in capsys.readouterr().out
    assert check(0) == 1
    assert capsys.readouterr().err.startswith(
        "cutrace: the budget's numbers are from nvrtc 11.8, compute_75, the trace is from nvrtc 12"
    )


def test_update_writes_a_first_budget_that_holds(capsys: Captured) -> None:
    assert check(1, "--update", "-d", "h200,8800gtx") == 0
    assert capsys.readouterr().out.startswith("budget.toml: 3 limits written\n")
    written = tomllib.loads(Path("budget.toml").read_text())
    assert written["compiler"].startswith("nvrtc 12")
    assert "PAD" not in written["compiler"]
    assert written["devices"] == ["h200"]  # 8800gtx has blocks of 512 threads at most
    assert written["budget"] == [
        {
            "kernel": "turn",
            "global_load_transactions": REQUESTS * 4,
            "global_store_transactions": REQUESTS * 4,
            "shared_conflicts": 0,
        }
    ]
    assert check(1) == 0
    assert check(0) == 1


def test_update_renews_numbers_and_keeps_places_and_comments() -> None:
    budget(
        "# as small as can be",
        "shared_conflicts = 5 # was 5",
        'sector_efficiency = ">= 0.5"',
        '"shared_wavefronts * 2" = 1',
    )
    assert check(0, "--update") == 0
    text = Path("budget.toml").read_text()
    assert "# as small as can be\n" in text
    assert f"shared_conflicts = {REQUESTS * 31} # was 5\n" in text
    assert 'sector_efficiency = ">= 1.0"' in text
    assert f'"shared_wavefronts * 2" = {2 * REQUESTS * 33}' in text
    assert check(0) == 0


def test_update_says_which_limits_changed(capsys: Captured) -> None:
    budget("shared_conflicts = 5", 'shared_wavefronts = ">= 1000000"', "shared_store_requests = 0")
    assert check(0, "--update") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("budget.toml: 3 limits written, 3 changed\n")
    assert f"  turn: shared_conflicts 5 -> {REQUESTS * 31:,}\n" in shown
    assert f"  turn: shared_wavefronts >= 1,000,000 -> >= {REQUESTS * 33:,}\n" in shown
    assert check(0, "--update") == 0
    assert capsys.readouterr().out.startswith("budget.toml: 3 limits written, 0 changed\n\n")


def test_annotations_stand_at_the_line_that_costs_most(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget("shared_conflicts = 0")
    assert check(0, "--format", "github") == 1
    said = capsys.readouterr()
    assert said.out == (
        "::error file=turn.cu,line=11,title=cutrace budget::shared_conflicts of turn on h200:"
        f" {REQUESTS * 31}, budget: not more than 0%0A"
        "lanes 0 to 31 conflict in bank 0: 32 wavefronts, 1 needed\n"
    )
    assert "1 of 1 limits broken" in said.err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert check(0) == 1
    assert capsys.readouterr().out.startswith("::error file=turn.cu,line=11,")
    assert check(0, "--format", "text") == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["shared_conflict = 0"], "no counter `shared_conflict`; nearest: shared_conflicts"),
        (['arry = "tile"', "shared_wavefronts = 1"], "arry = 'tile'; expected a number, or a comp"),
        (["arry = 1"], "no counter `arry`; nearest: array"),
        (['"shared_wavefronts +" = 0'], "`shared_wavefronts +` is no expression over counters"),
        (['"1 + 1" = 0'], "`1 + 1` reads no counter"),
        (["shared_wavefronts = true"], "expected a number"),
        (['shared_wavefronts = "about 5"'], 'a comparison such as ">= 0.9"'),
        ([], "no counter in it"),
        (['line = "turn.cu:99"', "shared_wavefronts = 0"], "turn.cu has 12"),
        (
            ['line = "tun.cu:9"', "shared_wavefronts = 0"],
            "no such source in the trace; nearest: turn",
        ),
        (
            ['line = "threadIdx"', "shared_wavefronts = 0"],
            "that one line of the kernel has; found turn",
        ),
        (['line = "warp"', "shared_wavefronts = 0"], "found none"),
        (['array = "tiel"', "shared_wavefronts = 0"], "no array `tiel`; nearest: tile"),
        (['line = "turn.cu:9"', 'array = "tile"', "shared_wavefronts = 0"], "not both"),
        (['line = "turn.cu:11"', "occupancy = 1"], "belongs to the launch as a whole"),
        (["gld_coherent = 0"], "h200 does not have gld_coherent"),
        (  # wavefronts of shared loads, in nvprof's name of before 7.0
            ["shared_load_transactions = 0"],
            "h200 does not have shared_load_transactions; nearest:"
            " l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        ),
        (["shared_efficiency = 0"], "h200 does not have shared_efficiency; nearest: shared_"),
        (['device = "h2000"', "shared_wavefronts = 0"], "h2000"),
    ],
)
def test_slips_of_the_pen_are_told_by_their_entry(
    lines: list[str], message: str, capsys: Captured
) -> None:
    budget(*lines)
    assert check(0) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[budgets]]\n", "unknown key `budgets`; nearest: budget"),
        ("devices = 3\n[[budget]]\nkernel = 'turn'\nshared_passes = 1", "expected a list of names"),
        ("budget = 3", "each `[[budget]]`"),
        ("devices = ['h200']", "no [[budget]] in it; --update writes"),
        ("[[budget]]\nshared_passes = 1", "budget 1: no `kernel`"),
        ("[[budget]]\nkernel = 3", "kernel = 3; expected a text"),
        ("= 3", "budget.toml: not TOML"),
    ],
)
def test_files_that_are_no_budget_are_told(text: str, message: str, capsys: Captured) -> None:
    Path("budget.toml").write_text(text)
    assert check(0) == 2
    assert message in capsys.readouterr().err


def test_a_kernel_that_the_trace_lacks_is_an_error_unless_allowed(capsys: Captured) -> None:
    budget("shared_conflicts = 0")
    more = '\n[[budget]]\nkernel = "trun"\nshared_conflicts = 0\n'
    Path("budget.toml").write_text(Path("budget.toml").read_text() + more)
    assert check(1) == 2
    assert "budget 2 (trun): the trace has no such kernel; nearest: turn" in capsys.readouterr().err
    assert check(1, "--allow-missing") == 0
    assert "not in the trace, left out: trun" in capsys.readouterr().out
    assert check(0, "--allow-missing") == 1


def test_a_budget_that_is_not_there_says_how_to_make_one(capsys: Captured) -> None:
    assert check(0) == 2
    assert "budget.toml: no such budget; --update writes one" in capsys.readouterr().err
    assert run(["check", "turn.cu", "-DPAD=0", "--update"]) == 2
    assert run(["check", "turn.cu", "-DPAD=0", "--budget", "b.toml", "--format", "xml"]) == 2


def test_a_launch_that_the_device_refuses_has_no_number(capsys: Captured) -> None:
    budget("shared_conflicts = 0")
    assert check(0, "-d", "8800gtx") == 2
    assert "8800gtx: cannot launch: 512 threads a block at most" in capsys.readouterr().err


def test_a_template_is_meant_by_its_name_and_by_each_instance(capsys: Captured) -> None:
    text = TURN.replace("__global__", "template <int PAD>\n__global__")
    line = text.splitlines()[0]
    both = "\n".join(line.replace("turn<<<", f"turn<{pad}><<<") for pad in (1, 0))
    Path("turn.cu").write_text(text.replace(line, both))
    for kernel, status in {"turn": 1, "turn<0>": 1, "turn<1>": 0, "turn<2>": 2}.items():
        entry = f'[[budget]]\nkernel = "{kernel}"\nshared_conflicts = 0\n'
        Path("budget.toml").write_text(f'devices = ["h200"]\n{entry}')
        assert run(["check", "turn.cu", "--budget", "budget.toml"]) == status
    err = capsys.readouterr().err
    assert len(re.findall(r"in launch 1, turn<0><<<", err)) == 2
    assert "in launch 0" not in err


def test_what_if_a_tile_had_its_padding(capsys: Captured) -> None:
    budget("shared_conflicts = 0")
    assert check(0, "--pad", "tile=1") == 0
    assert capsys.readouterr().out.count("not more than 0") == 1


def test_races_and_budget_are_checked_together() -> None:
    budget("shared_conflicts = 0")
    assert check(1, "--races") == 0
    Path("turn.cu").write_text(TURN.replace("__syncthreads();", ""))
    assert check(1, "--races") == 1


def test_a_time_that_a_trace_does_not_tell_holds_no_budget(capsys: Captured) -> None:
    budget('bound_time = "< 1000000"')
    assert check(1, "--sample-blocks", "4") == 2
    told = capsys.readouterr().err
    assert "launch 0 does not tell bound_time: it needs all blocks" in told

"""The first profiler's log: its grammar, its columns, and the variables that switch it on."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from profiles import MANIFEST, counts, launch_profile, profile

from cutrace.analyzer.profile import Profile
from cutrace.analyzer.profilers.profiler_environment import attach, read_config, read_switches
from cutrace.analyzer.profilers.profiler_log import render
from cutrace.base.errors import CutraceError
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.schema import Event

FIELD = re.compile(r"(\w+)=\[ ([\w0-9\.]+) \]")
"""How scripts of the time take a row apart."""

FOUR = ("gld_coherent", "gld_incoherent", "gst_coherent", "gst_incoherent")


def article() -> Profile:
    """The slow program of the 2008 article: 122 of its blocks, 16 half-warps each, on a cluster."""
    table = counts(
        global_load_coherent_32=[0] * 4,
        global_load_coherent_64=[61 * 16, 0, 61 * 16, 902 * 16],
        global_load_coherent_128=[0] * 4,
        global_load_incoherent_32=[0] * 4,
        global_store_coherent_32=[0] * 4,
        global_store_coherent_64=[0] * 4,
        global_store_coherent_128=[0] * 4,
        global_store_incoherent_32=[0, 61 * 16 * 16, 61 * 16 * 16, 902 * 16 * 16],
        instructions=[610, 0, 610, 9020],
    )
    return profile(launch_profile("8800gtx", (1, 0), table))


@pytest.mark.document("001.1", "the rows of the article")
def test_the_rows_of_the_2008_article_are_written_again_times_apart() -> None:
    assert render(article(), FOUR).splitlines() == [
        "# CUDA_PROFILE_LOG_VERSION 2.0",
        "# CUDA_DEVICE 0 Maker's 8800gtx",
        "# CUDA_CONTEXT 1",
        "method,gputime,cputime,occupancy,gld_incoherent,gld_coherent,gst_incoherent,gst_coherent",
        "method=[ memcpyHtoD ] gputime=[ 0.000 ] cputime=[ 0.000 ]",
        "method=[ _Z7reversePiPKi ] gputime=[ 0.000 ] cputime=[ 0.000 ] occupancy=[ 1.000 ]"
        " gld_incoherent=[ 0 ] gld_coherent=[ 1952 ] gst_incoherent=[ 62464 ] gst_coherent=[ 0 ]",
        "method=[ memcpyDtoH ] gputime=[ 0.000 ] cputime=[ 0.000 ]",
    ]


def test_the_expression_that_people_use_finds_every_value() -> None:
    copy, launch, _ = render(article(), FOUR).splitlines()[4:]
    assert dict(FIELD.findall(copy)) == {
        "method": "memcpyHtoD",
        "gputime": "0.000",
        "cputime": "0.000",
    }
    assert dict(FIELD.findall(launch))["gst_incoherent"] == str(122 * 16 * 16 * 2)


def test_csv_rows_follow_the_column_line_and_drop_what_is_empty_at_their_end() -> None:
    config = ["gridsize3d", "threadblocksize", "regperthread", "memtransfersize", "memtransferdir"]
    lines = render(article(), [*config, *FOUR], is_csv=True).splitlines()
    assert lines[3] == "# CUDA_PROFILE_CSV 1"
    assert lines[4:] == [
        "method,gputime,cputime,gridsizeX,gridsizeY,gridsizeZ,threadblocksizeX,threadblocksizeY,"
        "threadblocksizeZ,regperthread,occupancy,gld_incoherent,gld_coherent,gst_incoherent,"
        "gst_coherent,memtransfersize,memtransferdir",
        "memcpyHtoD,0.000,0.000,,,,,,,,,,,,,1048576,1",
        "_Z7reversePiPKi,0.000,0.000,1024,1,1,256,1,1,10,1.000,0,1952,62464,0",
        "memcpyDtoH,0.000,0.000,,,,,,,,,,,,,1048576,2",
    ]


def test_the_config_may_choose_the_form_and_extents_share_one_pair_of_brackets() -> None:
    row = render(article(), ["gridsize", "profilelogformat KVP"], is_csv=True).splitlines()[5]
    assert " gridsize=[ 1024, 1 ] occupancy=[ 1.000 ]" in row
    assert "# CUDA_PROFILE_CSV 1" in render(article(), ["profilelogformat CSV"])


def test_without_a_config_the_log_has_times_and_occupancy_only() -> None:
    assert render(article(), ()).splitlines()[3] == "method,gputime,cputime,occupancy"


def test_exported_whole_the_log_has_every_counter_that_the_device_has() -> None:
    names = render(article()).splitlines()[3].split(",")
    assert names[4:8] == ["gld_incoherent", "gld_coherent", "gst_incoherent", "gst_coherent"]
    assert "divergent_branch" in names
    assert "gld_32b" not in names


def test_the_bare_name_in_a_log_is_the_profilers_own() -> None:
    row = render(article(), ["instructions"]).splitlines()[5]
    assert row.endswith("instructions=[ 610 ]")  # one SM; the grid has 610 + 610 + 9020


def test_an_unknown_line_is_passed_over_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    text = render(article(), ["gld_coherant", "timestamp", "enableonstart 1", "gld_32b"])
    assert text.splitlines()[3] == "method,gputime,cputime,occupancy"
    told = capsys.readouterr().err
    assert "'gld_coherant' for this device; nearest: gld_coherent, " in told
    assert "`timestamp` is left out" in told
    assert "'gld_32b'" in told
    assert "enableonstart" not in told


def test_a_launch_that_the_device_refuses_has_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    refused = launch_profile("8800gtx", (1, 0), counts(instructions=[0] * 4), "cannot launch: no")
    assert "reverse" not in render(profile(refused), ())
    assert "launch 0 has no row in the log: 8800gtx cannot launch: no" in capsys.readouterr().err


def test_a_memset_has_a_row_too() -> None:
    events = (Event("set", 64, "", "out"), *MANIFEST.events)
    one = article()
    text = render(Profile(one.launches, type(MANIFEST)(events=events)), ["memtransferdir"])
    assert text.splitlines()[4] == "method=[ memset ] gputime=[ 0.000 ] cputime=[ 0.000 ]"


@pytest.mark.parametrize(
    ("environment", "log", "is_csv"),
    [
        ({"CUDA_PROFILE": "1"}, "cuda_profile.log", False),
        ({"COMPUTE_PROFILE": "1"}, "cuda_profile_0.log", False),
        ({"CUDA_PROFILE": "1", "CUDA_PROFILE_LOG": "x_%d.log"}, "x_0.log", False),
        ({"CUDA_PROFILE": "1", "CUDA_PROFILE_CSV": "1"}, "cuda_profile.log", True),
        ({"COMPUTE_PROFILE": "1", "COMPUTE_PROFILE_CSV": "0"}, "cuda_profile_0.log", False),
        ({"CUDA_PROFILE": "1", "CUDA_PROFILE_LOG": "a", "COMPUTE_PROFILE_LOG": "b"}, "b", False),
    ],
)
@pytest.mark.document("001.1", "CUDA_PROFILE and COMPUTE_PROFILE")
def test_either_spelling_of_the_variables_works_and_the_later_one_wins(
    environment: dict[str, str], log: str, is_csv: bool
) -> None:
    switches = read_switches(environment)
    assert switches is not None
    assert (switches.log, switches.is_csv, switches.config) == (Path(log), is_csv, ())


@pytest.mark.parametrize("environment", [{}, {"CUDA_PROFILE": "0"}, {"CUDA_PROFILE": ""}])
def test_the_profiler_is_off_unless_switched_on(environment: dict[str, str]) -> None:
    assert read_switches(environment) is None


def test_a_config_has_one_name_a_line_and_comments(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("# four at a time, once\ngld_coherent\n\n  branch  \n#gst_coherent\n")
    assert read_config(config) == ("gld_coherent", "branch")
    with pytest.raises(CutraceError, match=r"profiler config .*nowhere: No such file"):
        read_config(tmp_path / "nowhere")


def test_a_session_is_asked_once_and_keeps_the_command_lines_arguments() -> None:
    at_close: list[Callable[[Path], None]] = [print]
    attach(at_close, ReplayOptions(profiled_blocks=122))
    attach(at_close)
    assert len(at_close) == 2
    assert getattr(at_close[1], "args", None) == (ReplayOptions(profiled_blocks=122),)
    attach(at_close, ReplayOptions())
    assert getattr(at_close[1], "args", None) == (ReplayOptions(),)

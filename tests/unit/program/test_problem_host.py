"""What a failed problem or solution prints: the frames of its own files."""

from pathlib import Path

import pytest

from cutrace.tracer.program.startup import problem_host


def test_a_failure_shows_the_frames_of_the_file_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "problem.py"
    path.write_text("x = 1\ny = x / 0\n")
    with pytest.raises(ZeroDivisionError) as failure:
        problem_host.load(path, {})
    here = failure.value.__traceback__
    assert here  # the frame of this test, in front of the host's
    problem_host.Report(tmp_path).fail(failure.value.with_traceback(here.tb_next), path)
    printed = capsys.readouterr().err
    assert f'"{path}", line 2' in printed
    assert problem_host.__file__ not in printed
    assert '"line": 2' in (tmp_path / "report.json").read_text()

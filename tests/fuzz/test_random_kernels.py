"""Random kernels leave what a scalar reference says; scripts/fuzz_kernels.py runs more of them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from engines import compiled_where_known, files_of
from fuzz.run import check
from fuzz.strategy import programs
from fuzz.syntax import Program
from hypothesis import HealthCheck, given, settings


@settings(
    max_examples=40, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(programs())
def test_a_random_kernel_leaves_what_the_reference_leaves(program: Program) -> None:
    traces = []
    for engine in ("array", "auto"):
        with TemporaryDirectory() as folder, compiled_where_known():
            traces.append(files_of(check(program, Path(folder), engine)))
    assert [name for name in traces[0] if traces[0][name] != traces[1][name]] == []

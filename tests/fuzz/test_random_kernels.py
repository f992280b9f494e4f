"""Random kernels leave what a scalar reference says; scripts/fuzz_kernels.py runs more of them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.run import check
from fuzz.strategy import programs
from fuzz.syntax import Program
from hypothesis import HealthCheck, given, settings


@settings(
    max_examples=60, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(programs())
def test_a_random_kernel_leaves_what_the_reference_leaves(program: Program) -> None:
    with TemporaryDirectory() as folder:
        check(program, Path(folder), "compiled" if program.seed % 4 == 0 else "array")

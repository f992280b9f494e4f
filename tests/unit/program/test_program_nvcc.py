"""What `cutrace nvcc` prints comes as the compiler says it."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from program_run import cutrace

from cutrace.tracer.front.toolkit import Toolkit, find_host_compiler, find_toolkit
from cutrace.tracer.program import build
from cutrace.tracer.program.build import Builder, run_nvcc, show_nvcc, split_code_options
from cutrace.tracer.program.library import build_library

COMPILER = """
import pathlib, sys, time
print("a remark", file=sys.stderr, flush=True)
seen = pathlib.Path(sys.argv[1])
for _ in range(500):
    if seen.exists():
        break
    time.sleep(0.01)
else:
    sys.exit("nobody has seen it")
print("to stdout")
if "-include" not in sys.argv:
    print('a.cu(1): error: identifier "texture" is undefined', file=sys.stderr)
    sys.exit(2)
print("error: no memory" if "bad" in sys.argv else "done", file=sys.stderr)
sys.exit("bad" in sys.argv)
"""


class Witness(io.StringIO):
    """A stream that makes a file when the first line comes."""

    def __init__(self, seen: Path) -> None:
        super().__init__()
        self.seen = seen

    def write(self, text: str) -> int:
        self.seen.touch()
        return super().write(text)


@pytest.mark.parametrize(
    ("word", "last", "status"), [("good", "done", 0), ("bad", "error: no memory", 1)]
)
def test_lines_come_while_the_compiler_runs_and_the_errors_of_a_first_run_do_not(
    word: str,
    last: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = tmp_path / "seen"
    witness = Witness(seen)
    monkeypatch.setattr(sys, "stderr", witness)
    command = [sys.executable, "-c", COMPILER, str(seen), word]
    assert show_nvcc(command) == status, witness.getvalue()
    # the first run's remark is seen while it runs; its error is not, since a second one follows
    assert witness.getvalue() == f"a remark\na remark\n{last}\n"
    assert capsys.readouterr().out == "to stdout\nto stdout\n"


def test_what_a_compiler_quotes_of_a_source_in_latin_letters_is_read() -> None:
    said = "import sys; sys.stderr.buffer.write(bytes([0x63, 0xE9])); sys.exit(2)"
    answer = run_nvcc([sys.executable, "-c", said])
    assert (answer.returncode, answer.stderr) == (2, "c\N{REPLACEMENT CHARACTER}")


def test_options_that_are_for_machine_code_or_nvidias_runtime_are_left_out() -> None:
    words = ["-dlto", "-rdc=true", "-cudadevrt", "static", "-lcudart_static", "-lm", "-arch=native"]
    assert split_code_options(words) == ([], ["-rdc=true", "-lm"])


@pytest.mark.parametrize(
    ("words", "archs"),
    [
        ("-arch=sm_90a", ["90a"]),
        ("-arch sm_90a", ["90a"]),
        ("--gpu-architecture=compute_90a", ["90a"]),
        ("--gpu-architecture compute_100f --gpu-code=sm_103f", ["100f"]),
        ("-code=sm_90a,compute_90a", ["90a"]),
        ("-gencode arch=compute_90a,code=sm_90a", ["90a"]),
        ("-gencode=arch=compute_90a,code=[sm_90a,compute_90a]", ["90a"]),
        ("--generate-code arch=compute_80,code=[sm_86,lto_90a]", ["80"]),
        ("-gencode code=sm_90a,arch=compute_90a", ["90a"]),
        (
            "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a",
            ["80", "90a"],
        ),
        ("-gencode arch=compute_52,code=sm_52 -gencode arch=compute_61,code=sm_61", ["75"]),
    ],
)
def test_architectures_stay_what_they_are_in_every_spelling(words: str, archs: list[str]) -> None:
    assert split_code_options(["-O2", *words.split(), "-lm"]) == (archs, ["-O2", "-lm"])


def test_a_file_of_machine_code_gets_ptx_which_modules_are_loaded_from_as_well() -> None:
    place = Path("/x")
    builder = Builder(Toolkit(place), "g++", place, place)
    plain = builder.command(["-cubin", "-arch=sm_80", "src/k.cu"], 90)
    assert {"-gencode=arch=compute_80,code=compute_80", "--ptx"} < set(plain)
    assert not {"-cubin", "--cubin"} & set(plain)
    assert plain[plain.index("-o") + 1] == "k.cubin"  # as nvcc names it
    named = builder.command(["--cubin", "k.cu", "-o", "m.bin"], 90)
    assert "--ptx" in named
    assert named.count("-o") == 1


PARTS = {
    "one.cu": "__device__ float twice(float x) { return 2 * x; }\n",
    "two.cu": "extern __device__ float twice(float);\n"
    "__global__ void k(float *x) { *x = twice(*x); }\n"
    "int main() { float *x; cudaMallocManaged(&x, 4); *x = 3; k<<<1, 1>>>(x);\n"
    "    return cudaDeviceSynchronize() || *x != 6; }\n",
}


@pytest.mark.slow
def test_a_host_compiler_links_what_was_linked_for_the_device(tmp_path: Path) -> None:
    for name, text in PARTS.items():
        (tmp_path / name).write_text(text)
    compiled = cutrace(tmp_path, "nvcc", "-dc", "-dlto", *PARTS)
    linked = cutrace(tmp_path, "nvcc", "-dlink", "-arch=sm_70", "one.o", "two.o", "-o", "both.o")
    assert (compiled.status, linked.status) == (0, 0), compiled.err + linked.err
    compiler = find_host_compiler()
    ours = f"-L{build_library(find_toolkit(), compiler)}"
    link = [compiler, "one.o", "two.o", "both.o", "-o", "app", ours, "-lcudart"]
    subprocess.run(link, cwd=tmp_path, check=True)
    done = cutrace(tmp_path, "record", "--", "./app")
    assert done.status == 0, done.err
    assert len(done.trace.launches) == 1


def test_headers_of_another_minor_version_are_taken_as_they_are(tmp_path: Path) -> None:
    """What libcu++ says where the runtime's headers are 13.0 beside nvcc 13.5: a run follows."""
    said = (
        "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"
    )
    off = "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"
    code = f"import sys; sys.exit(0 if {off!r} in sys.argv else {said!r})"
    (tmp_path / "nvcc.py").write_text(code)
    answer = run_nvcc([sys.executable, str(tmp_path / "nvcc.py")])
    assert (answer.returncode, answer.args[-1]) == (0, off)


@pytest.mark.parametrize("name", ["assert", "uint32_t", "FLT_MAX"])
def test_names_that_headers_of_cuda_12_included_are_there(tmp_path: Path, name: str) -> None:
    """What nvcc 13 says of them; CUDA 12.9's cuda_fp8.hpp, for one, included assert.h."""
    code = (
        "import sys\n"
        "headers = sys.argv[-1].endswith('standard.h') and open(sys.argv[-1]).read()\n"
        f"sys.exit(0 if headers else 'a.cu(1): error: identifier \"{name}\" is undefined')"
    )
    (tmp_path / "nvcc.py").write_text(code)
    assert run_nvcc([sys.executable, str(tmp_path / "nvcc.py")]).returncode == 0


def test_an_architecture_that_nvcc_no_longer_knows_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    build._tell_old.cache_clear()
    for _ in range(2):
        assert split_code_options(["-arch=sm_20", "-O3"]) == (["75"], ["-O3"])
    assert capsys.readouterr().err == (
        "cutrace: nvcc 13 compiles for 7.5 and newer: compute_20 becomes compute_75\n"
    )

"""Programs that cannot be built or started: one message says what is missing, and what to do."""

import subprocess
from pathlib import Path

import pytest
from program_run import Done, cutrace

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.toolkit import Toolkit, advise, find_host_compiler, find_toolkit
from cutrace.tracer.program.library import build_library

EMPTY = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); return cudaGetLastError(); }\n"


def only_message(done: Done) -> str:
    """What cutrace said, in one message, with no trace and no traceback."""
    assert not done.path.exists()
    assert "Traceback" not in done.err
    assert done.err.count("cutrace: ") == 1, done.err
    return done.err.partition("cutrace: ")[2].strip()


def test_headers_of_another_release_are_named_with_the_packages_to_move(tmp_path: Path) -> None:
    toolkit = Toolkit(tmp_path)
    toolkit.include.mkdir()
    toolkit.nvcc.parent.mkdir()
    (toolkit.include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13000\n")
    toolkit.nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.5, V13.5.37'\n")
    toolkit.nvcc.chmod(0o755)
    theirs = f"{toolkit.include}/cuda_fp16.hpp(120): error: expected a declaration"
    through_profile = f"{tmp_path}/bin/../include/crt/host_config.h:143:2: error: #error -- no"
    made_by_nvcc = (
        '/tmp/x/6_app.cudafe1.stub.c:13:184: error: macro "__cudaLaunch" passed 2 arguments'
    )
    for message in (theirs, through_profile, made_by_nvcc):
        assert toolkit.advise_release(message) == (
            "\nnvcc is of CUDA 13.5, its headers are of CUDA 13.0: move nvcc with python -m pip "
            'install "nvidia-cuda-nvcc==13.0.*" "nvidia-nvvm==13.0.*" "nvidia-cuda-crt==13.0.*"'
        )
    assert not toolkit.advise_release("app.cu(3): error: expected a declaration")
    (toolkit.include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13050\n")
    assert not toolkit.advise_release(theirs)


def test_without_a_host_compiler_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    (tmp_path / "app.cu").write_text(EMPTY)
    said = only_message(cutrace(tmp_path, "record", "app.cu", "--"))
    assert said.startswith(
        "a CUDA program needs a C++ compiler for its host code, and there is none: install g++"
    )


def test_a_named_host_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_CCBIN", "/no/such/g++")
    find_host_compiler.cache_clear()
    with pytest.raises(CutraceError, match=r"NVCC_CCBIN is /no/such/g.., which is not there"):
        find_host_compiler()
    find_host_compiler.cache_clear()


def test_nvcc_says_what_a_missing_header_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text("#include <cudnn.h>\nint main() {}\n")
    done = cutrace(tmp_path, "nvcc", "app.cu")
    assert done.status != 0
    assert "cudnn.h: No such file" in done.err
    assert done.err.splitlines()[-1].startswith(
        "cutrace: cuDNN is a library of machine code, which cutrace cannot record"
    )


@pytest.mark.parametrize(
    ("source", "flags", "message"),
    [
        (
            "#include <helper_image.h>\nint main() {}\n",
            "",
            "helper_image.h comes with CUDA's samples: git clone https://github.com/NVIDIA/cuda-samples",
        ),
        (
            "#include <cutil_math.h>\nint main() {}\n",
            "",
            "cutil_math.h came with the SDK of CUDA 4 and older; of that cutrace has cutil.h",
        ),
        (
            "#include <cusolverSp.h>\nint main() {}\n",
            "",
            "cuSOLVER is a library of machine code, which cutrace cannot record: build the program",
        ),
        ("int main() {}\n", "--nvcc-flags=-lnppc", "NPP is a library of machine code"),
        ('#include "nothing.h"\nint main() {}\n', "", "nothing.h: No such file or directory"),
    ],
)
def test_a_library_that_is_missing_where_a_program_is_built_is_named(
    source: str, flags: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "app.cu").write_text(source)
    said = only_message(cutrace(tmp_path, "record", "app.cu", *filter(None, [flags]), "--"))
    assert said.startswith("nvcc does not build it:\n")
    assert message in said


def test_a_source_without_main_is_told_how_a_kernel_is_launched_alone(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text("__global__ void k(float *a) { *a = 1; }\n")
    said = only_message(cutrace(tmp_path, "record", "app.cu", "--"))
    assert said.startswith("no main in app.cu: name the file that has it, too, or launch a kernel")
    assert "record app.cu --launch" in said
    assert "ld" not in said.split()


def test_a_library_that_is_missing_where_a_program_starts_is_told(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text("int part();\n" + EMPTY.replace("return", "return part() +"))
    (tmp_path / "part.c").write_text("int part(void) { return 0; }\n")
    compiler = [find_host_compiler(), "-shared", "-fPIC", "-x", "c", "part.c"]
    subprocess.run([*compiler, "-o", "libpart.so"], cwd=tmp_path, check=True)
    (tmp_path / "app.cu").write_text('extern "C" ' + (tmp_path / "app.cu").read_text())
    built = cutrace(tmp_path, "nvcc", "app.cu", "-L.", "-lpart", "-o", "app")
    assert built.status == 0, built.err
    (tmp_path / "libpart.so").unlink()
    done = cutrace(tmp_path, "record", "--", "./app")
    assert "libpart.so: cannot open shared object file" in done.err  # the system's own words
    assert only_message(done).startswith(
        "./app: the system could not start it, most likely for a library that is missing"
    )


def test_a_program_with_machine_code_of_another_chip_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(EMPTY)
    toolkit, compiler = find_toolkit(), find_host_compiler()
    code = "-gencode=arch=compute_80,code=sm_80"
    nvcc = [str(toolkit.nvcc), code, "-cudart", "shared", "app.cu", "-o", "app"]
    library = f"-L{build_library(toolkit, compiler)}"
    subprocess.run([*nvcc, "-ccbin", compiler, library], cwd=tmp_path, check=True)
    done = cutrace(tmp_path, "record", "--", "./app")
    assert done.status == 209  # cudaErrorNoKernelImageForDevice, which the program returns
    assert (
        "the program has machine code alone (sm_80), no PTX, and none for compute capability 9.0: "
        "choose -d of one of these, or build it with `cutrace nvcc`" in done.err
    )


def test_an_instruction_of_another_device_is_told_with_its_devices() -> None:
    said = "x.ptx, line 23; error   : Instruction 'tcgen05.alloc' not supported on .target 'sm_90'"
    assert advise(said).strip() == (
        "tcgen05.alloc is not of sm_90: PTX ISA 9.7.16, compute capability 10.0, 10.1 and 10.3;"
        " -arch and -d choose one"
    )
    assert advise(said.replace("tcgen05.alloc", "nothing.b32")) == ""

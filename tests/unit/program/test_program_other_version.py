"""Programs built with the runtime library of another version of cutrace."""

from pathlib import Path

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program import library

SOURCE = """
__global__ void put(int *out) { out[threadIdx.x] = 7; }
int main()
{
    int *d, h[32];
    CHECK(cudaMalloc(&d, sizeof h));
    put<<<1, 32>>>(d);
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    return h[31] != 7;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose library has other messages, another soname, and symbols as once all had."""
    folder = tmp_path_factory.mktemp("program")
    run = library._run

    def run_otherwise(command: list[str], work: Path) -> None:
        words = (word.replace("soname,libcudart", "soname,libother") for word in command)
        run(["-O0" if word == "-O2" else word for word in words if word != "-s"], work)

    toolkit = find_toolkit()
    major = toolkit.version.partition(".")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "checksum", lambda: 1)
        patch.setattr(library, "_run", run_otherwise)
        library._make(folder, toolkit, find_host_compiler(), major)
    (folder / f"libother.so.{major}").symlink_to(f"libcudart.so.{major}")
    (folder / "app.cu").write_text(HEAD + SOURCE)
    words = (f"-L{folder}", "-Xlinker", f"-rpath={folder}", "-o", "app")
    done = cutrace(folder, "nvcc", "app.cu", *words)
    assert done.status == 0, done.err
    assert b"libother.so" in (folder / "app").read_bytes()
    return folder


def run(folder: Path, *words: str) -> Done:
    return cutrace(folder, "record", "-o", "app.cutrace", "--", *words)


def test_it_runs_with_the_library_of_this_version(program: Path) -> None:
    """Both are loaded then; each redirects what it finds of the runtime to itself."""
    done = run(program, "timeout", "60", "./app")
    assert (done.status, len(done.trace.launches)) == (0, 1), done.err


def test_it_is_refused_if_it_loads_its_own_alone(program: Path) -> None:
    words = ("env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH", "./app")
    done = cutrace(program, "record", "-o", "refused.cutrace", "--", *words)
    assert done.err.startswith("cutrace: this program has loaded the runtime library of another ")
    assert done.err.count("\n") == 1
    assert (done.status, (program / "refused.cutrace").exists()) == (2, False)


def test_the_library_has_the_soname_that_programs_ask_for() -> None:
    """Else the loader takes the one that a program was built with."""
    toolkit = find_toolkit()
    name = f"libcudart.so.{toolkit.version.partition('.')[0]}"
    made = library.build_library(toolkit, find_host_compiler()) / name
    assert made.is_file()
    assert not made.is_symlink()
    assert f"\0{name}\0".encode() in made.read_bytes()

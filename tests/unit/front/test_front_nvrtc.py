"""NVRTC runs in a process of its own: what ends that process is told, and ends nothing else."""

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import nvrtc

KERNEL = "__global__ void k(float *a) { a[threadIdx.x] = 1; }\n"
LONG = "__global__ void k(float *a) { %s }\n" % ("a[threadIdx.x] += a[threadIdx.y];" * 20_000)

CRASHES = """
import os, signal, sys
sys.stdin.readline()
os.kill(os.getpid(), signal.{how})
"""


@pytest.fixture(autouse=True)
def nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the compiler, which is not asked twice for what can be kept."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> nvrtc._Process:
    """A process of this test's own, not the one that all other tests ask."""
    mine = nvrtc._Process()
    monkeypatch.setattr(nvrtc, "_COMPILER", mine)
    return mine


def test_several_sources_are_answered_by_one_process(compiler: nvrtc._Process) -> None:
    first = nvrtc.compile_program(KERNEL, "k.cu", "compute_75")
    running = compiler._running
    wrong = nvrtc.compile_program("__global__ void k( {", "k.cu", "compute_75")
    named = nvrtc.compile_program(
        "template<class T> __global__ void k(T *a) { *a = 1; }",
        *("k.cu", "compute_80", ("-lineinfo",), ("k<int>",)),
    )
    assert ".target sm_75" in (first.ptx or "")
    assert (wrong.ptx, "k.cu(1): error" in wrong.log) == (None, True)
    assert named.names == {"k<int>": "_Z1kIiEvPT_"}
    assert compiler._running is running


@pytest.mark.parametrize("how", ["SIGSEGV", "SIGKILL"])
def test_a_crash_of_the_compiler_is_told(
    how: str, compiler: nvrtc._Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "process.py"
    program.write_text(CRASHES.format(how=how))
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "_PROGRAM", program)
        with pytest.raises(CutraceError) as caught:
            nvrtc.compile_program(KERNEL, "hard.cu", "compute_75")
    words = signal.strsignal(signal.Signals[how])
    assert str(caught.value).startswith(
        f"hard.cu: NVRTC, NVIDIA's compiler, crashed on this source ({words}); compile it to PTX"
    )
    assert nvrtc.compile_program(KERNEL, "k.cu", "compute_75").ptx


def test_a_target_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(CutraceError, match=r"^target compute_76: NVRTC 12\.\d compiles for comp"):
        nvrtc.compile_program(KERNEL, "k.cu", "compute_76")


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(CutraceError, match=r"^nvrtcCompileProgram.*--not-there.* of NVRTC failed"):
        nvrtc.compile_program(KERNEL, "k.cu", "compute_75", ("--not-there",))


def test_ctrl_c_ends_a_compilation_and_not_the_next(compiler: nvrtc._Process) -> None:
    nvrtc.compile_program(KERNEL, "k.cu", "compute_75")
    running = compiler._running
    assert running is not None
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    listening = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            nvrtc.compile_program(LONG, "long.cu", "compute_75")
    finally:
        signal.signal(signal.SIGINT, listening)
    assert running.wait(5) == -signal.SIGKILL
    assert nvrtc.compile_program(KERNEL, "k.cu", "compute_75").ptx


@pytest.mark.slow
def test_the_process_ends_with_the_one_that_asks(tmp_path: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:  # as a killed run: nothing is closed or waited for in Python
        nvrtc.compile_program(KERNEL, "k.cu", "compute_75")
        running = nvrtc._COMPILER._running
        assert running is not None
        os.write(write, str(running.pid).encode())
        os._exit(0)
    pid = int(os.read(read, 20))
    os.waitpid(child, 0)
    for _ in range(100):
        if not Path(f"/proc/{pid}/cmdline").is_file():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/cmdline").is_file()


class Nobody(nvrtc._Process):
    """Says what it was asked for, and has no answer."""

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise CutraceError(f"asked for {request['name']}")


def test_a_source_that_includes_nothing_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = ("-lineinfo", "-DN=4")
    header = {"n.h": "#define N 4"}
    including = '#include "n.h"\n' + KERNEL
    first = nvrtc.compile_program(KERNEL, "k.cu", "compute_75", options, ("k",))
    assert nvrtc.compile_program(including, "i.cu", "compute_75", options, (), header).ptx
    monkeypatch.setattr(nvrtc, "_COMPILER", Nobody())
    assert nvrtc.compile_program(KERNEL, "k.cu", "compute_75", options, ("k",)) == first
    with pytest.raises(CutraceError, match=r"asked for i\.cu"):
        nvrtc.compile_program(including, "i.cu", "compute_75", options, (), header)
    for other in ({"text": KERNEL + " "}, {"name": "l.cu"}, {"options": ("-DN=5",)}):
        asked: dict[str, Any] = {"text": KERNEL, "name": "k.cu", "options": options, **other}
        with pytest.raises(CutraceError, match="asked for"):
            nvrtc.compile_program(target="compute_75", name_expressions=("k",), **asked)
    with pytest.raises(CutraceError, match="asked for"):
        nvrtc.compile_program(KERNEL, "k.cu", "compute_80", options, ("k",))


def test_options_for_a_debugger_are_of_one_source_alone() -> None:
    """NVRTC 12.9 optimizes no later source of its process: it names fewer state spaces."""
    text = """struct Big { int a[16]; };
    __global__ void k(const __grid_constant__ Big b, int *out, int n)
    { out[threadIdx.x] = b.a[threadIdx.x * n]; } // no answer is kept of what may include
    """
    first = nvrtc.compile_program(text, "k.cu", "compute_75").ptx
    assert nvrtc.compile_program(text, "k.cu", "compute_75", ("-G",)).ptx != first
    assert nvrtc.compile_program(text, "k.cu", "compute_75").ptx == first

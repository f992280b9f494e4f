"""JAX finds a device, and XLA an assembler that returns PTX. A stand-in asks as JAX does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutrace.tracer.program.run import STARTUP

MODULES = {
    "jax/__init__.py": "",
    "jax/_src/__init__.py": "",
    "jax_cuda13_plugin/__init__.py": "",
    "jax/_src/hardware_utils.py": """
import os
def has_visible_nvidia_gpu():
    return os.path.exists("/dev/no such device")
""",
    "jax/_src/lib/__init__.py": 'cuda_path = "TOOLKIT"',
}
ASK = """
import os
from jax._src import hardware_utils, lib
print(hardware_utils.has_visible_nvidia_gpu(), os.environ["XLA_FLAGS"],
      os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"], lib.cuda_path, sep="|")
"""
PTXAS = '#!/bin/sh\necho "ptxas itself: $*"\n'


def ask(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Import the stand-in as a recorded Python does, with a toolkit that has a ptxas."""
    (folder / "toolkit" / "bin").mkdir(parents=True)
    (folder / "toolkit" / "nvvm").mkdir()
    ptxas = folder / "toolkit" / "bin" / "ptxas"
    ptxas.write_text(PTXAS)
    ptxas.chmod(0o755)
    for name, text in MODULES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("TOOLKIT", str(folder / "toolkit")))
    own = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    paths = {"PYTHONPATH": f"{STARTUP}:{folder}", "CUTRACE_SCRATCH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        check=True,
        env={**own, **paths, **environment},
    )


def test_jax_finds_a_device_and_xla_measures_no_candidates(tmp_path: Path) -> None:
    done = ask(tmp_path)
    flags = "--xla_gpu_autotune_level=0 --xla_gpu_enable_command_buffer="
    flags += " --xla_disable_hlo_passes=conv-rewriter,conv-kind-assignment"
    assert done.stdout.startswith(f"True|{flags}|false|")
    assert done.stderr.count("XLA measures no candidates") == 1


def test_options_of_the_user_stay(tmp_path: Path) -> None:
    flags = "--xla_gpu_autotune_level=4 --xla_disable_hlo_passes=cse --xla_dump_to=x"
    flags += " --xla_gpu_enable_command_buffer=FUSION"
    done = ask(tmp_path, XLA_FLAGS=flags, XLA_PYTHON_CLIENT_PREALLOCATE="true")
    assert done.stdout.startswith(f"True|{flags}|true|")
    assert not done.stderr


@pytest.mark.parametrize("output", ["-o {}", "-o{}", "--output-file {}", "--output-file={}"])
def test_the_assembler_of_xla_returns_ptx(tmp_path: Path, output: str) -> None:
    toolkit = Path(ask(tmp_path).stdout.strip().split("|")[-1])
    assert (toolkit / "nvvm").is_dir()
    source, made = tmp_path / "a.ptx", tmp_path / "a.cubin"
    source.write_text(".version 9.0\n.target sm_90a\n")
    command = [str(toolkit / "bin" / "ptxas"), str(source), *output.format(made).split(), "-v"]
    subprocess.run([*command, "-arch=sm_90a"], check=True)
    assert made.read_bytes() == source.read_bytes() + b"\0"


def test_questions_of_xla_go_to_ptxas_itself(tmp_path: Path) -> None:
    toolkit = Path(ask(tmp_path).stdout.strip().split("|")[-1])
    probe = tmp_path / "probe.ptx"
    probe.write_text(".version 99.99\n.target sm_10\n")
    for words in (["--version"], ["--input-as-string", "x"], [str(probe), "-o", "/dev/null"]):
        command = [str(toolkit / "bin" / "ptxas"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"ptxas itself: {' '.join(words)}\n"


def test_a_jax_without_its_plugin_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(MODULES, "jax_cuda13_plugin/__init__.py")
    environment = {"XLA_FLAGS": "", "XLA_PYTHON_CLIENT_PREALLOCATE": ""}
    done = ask(tmp_path, **environment)
    assert done.stdout.startswith("False|||")
    assert 'its plugin for CUDA is missing: pip install "jax[cuda13]"' in done.stderr


def test_warp_compiles_its_kernels_to_ptx_with_line_information(tmp_path: Path) -> None:
    package = tmp_path / "warp"
    package.mkdir()
    (package / "__init__.py").write_text("from . import config\n")
    (package / "config.py").write_text("lineinfo, cuda_output = False, None\n")
    done = subprocess.run(
        [sys.executable, "-c", "from warp.config import *; print(lineinfo, cuda_output)"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{STARTUP}:{tmp_path}"},
    )
    assert done.stdout == "True ptx\n"

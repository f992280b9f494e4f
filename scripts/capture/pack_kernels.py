"""Put the host programs of `kernels/` and what they include into a folder that programs.py runs.

    python scripts/capture/pack_kernels.py FOLDER CHECKOUTS
    python scripts/capture/pack_kernels.py --build FOLDER

CHECKOUTS has clones named cutlass, DeepGEMM, flash-attention, flashinfer, aphrodite-engine, ggml
and marlin.
With `--build`, on a machine with nvcc: each program once, all at a time: machine code and PTX of
9.0a in one file, with NVIDIA's static runtime. Nothing of the libraries is kept in this tree.
"""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS = 400
CODE = ("-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]")
FLAGS = ("-O3", "-std=c++20", "-lineinfo", "-DNDEBUG", "--expt-relaxed-constexpr",
         "--expt-extended-lambda", "-diag-suppress", "177,20012,550,39")  # fmt: skip
PARTS = (
    "cutlass/include", "cutlass/tools/util/include", "cutlass/examples/common",
    "cutlass/examples/48_hopper_warp_specialized_gemm", "cutlass/examples/cute/tutorial/hopper",
    "cutlass/examples/50_hopper_gemm_with_epilogue_swizzle",
    "DeepGEMM/deep_gemm/include", "flash-attention/csrc/flash_attn/src", "flashinfer/include",
    "aphrodite-engine/csrc", "ggml/include", "ggml/src",
    "marlin/marlin",
)  # fmt: skip
READ = re.compile(r"\.(h|hpp|cuh|inl|cu)$")
STUBS = (
    *(f"torch/{name}.h" for name in ("all", "cuda", "types")),
    *(f"torch/headeronly/util/{name}.h"
      for name in ("BFloat16", "Half", "Float8_e4m3fn", "Float8_e4m3fnuz")),
    *(f"c10/{name}.h" for name in ("cuda/CUDAGuard", "util/Optional", "util/Float8_e4m3fn",
                                   "util/Float8_e4m3fnuz")),
    "ATen/ATen.h", "ATen/cuda/Atomic.cuh", "ATen/cuda/CUDAContext.h",
)  # fmt: skip
"""Headers of PyTorch of which the kernels use nothing but names of types (kernels/vllm.cu)."""
CHECKS = "c10/cuda/CUDAException.h"
CUTS = {
    "layernorm": "layernorm_kernels.cu",
    "pos_encoding": "pos_encoding_kernels.cu",
    "moe_align": "moe/moe_align_sum_kernels.cu",
}
"""Files of vLLM's kernels: what is behind the first namespace needs PyTorch, and is not taken."""
CUTLASS = "-I{src}/cutlass/include"
TOOLS = (CUTLASS, "-I{src}/cutlass/tools/util/include", "-I{src}/cutlass/examples/common")
FLASH = ("-I{src}/flash-attention/csrc/flash_attn/src", "-I{src}/stubs", CUTLASS)
VLLM = ("", "/moe", "/attention")
GGML = ("/src/ggml-cuda", "/src", "/include")
UNUSED = ("-Xcompiler", "-ffunction-sections", "-Xlinker", "--gc-sections")
"""Options that leave out functions that call others of the library."""
SMALL = "--m=512 --n=768 --k=256 --iterations=0"
EXAMPLES = "cutlass/examples"
PROGRAMS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "deepgemm": ("hosts/deepgemm.cu", ("-I{src}/DeepGEMM/deep_gemm/include", *TOOLS), ""),
    "flash2-64": ("hosts/flash2_backward.cu", FLASH, ""),
    "flash2-128": ("hosts/flash2_backward.cu", ("-DWIDTH=128", *FLASH), ""),
    "flashinfer": (
        "hosts/flashinfer.cu", ("-I{src}/flashinfer/include", "-I{src}/stubs"), "",
    ),
    "vllm": (
        "hosts/vllm.cu",
        (*(f"-I{{src}}/aphrodite-engine/csrc{part}" for part in VLLM), "-I{src}/stubs"), "",
    ),
    "ggml": (
        "hosts/ggml.cu",
        (*(f"-I{{src}}/ggml{part}" for part in GGML), "-I{src}/stubs", *UNUSED), "",
    ),
    "marlin-16g": ("hosts/marlin.cu", ("-I{src}/marlin/marlin",), "16 128"),
    **{
        f"cutlass-{name[:2]}": (f"{EXAMPLES}/{name}/{name}.cu", (*TOOLS, "-I{src}/stubs"), SMALL)
        for name in ("48_hopper_warp_specialized_gemm", "50_hopper_gemm_with_epilogue_swizzle")
    },
    **{
        f"cute-{name.replace('_', '-')}": (
            f"{EXAMPLES}/cute/tutorial/hopper/{name}_sm90.cu", (*TOOLS, "-I{src}/stubs"),
            "512 768 256 T N",
        )
        for name in ("wgmma", "wgmma_tma")
    },
}  # fmt: skip
"""Source, options and arguments of each, fixed before the first run."""


def pack(folder: Path, checkouts: Path) -> None:
    """Copy headers, hosts and what is cut; say in programs.json what is to run."""
    src = folder / "src"
    for part in PARTS:
        shutil.copytree(
            checkouts / part,
            src / part,
            ignore=lambda at, names: [
                n for n in names if (Path(at) / n).is_file() and not READ.search(n)
            ],
            dirs_exist_ok=True,
        )
    shutil.copytree(HERE / "kernels", src / "hosts")
    for stub in (*STUBS, CHECKS):
        (src / "stubs" / stub).parent.mkdir(parents=True, exist_ok=True)
        (src / "stubs" / stub).write_text("#pragma once\n")
    with (src / "stubs" / CHECKS).open("a") as file:
        file.write("#define C10_CUDA_CHECK(call) (void)(call)\n")
        file.write("#define C10_CUDA_KERNEL_LAUNCH_CHECK()\n")
    for header in toolkit().glob("cu[br]*.h"):  # cuBLAS and cuRAND, which not every nvcc has
        shutil.copy(header, src / "stubs")
    csrc = src / "aphrodite-engine" / "csrc"
    for name, source in CUTS.items():
        end = "\n}  // namespace aphrodite\n"
        text = (csrc / source).read_text().partition(end)[0] + end
        (csrc / source).with_name(f"{name}_cut.cuh").write_text(text)
    for script in (*HERE.glob("*.py"), HERE.parent / "try_inputs.py"):
        shutil.copy(script, folder)
    said = [program(name) for name in PROGRAMS]
    (folder / "programs.json").write_text(json.dumps(said, indent=1))


def toolkit() -> Path:
    """Where `cutrace toolkit` has headers."""
    said = subprocess.run(["cutrace", "toolkit"], capture_output=True, text=True, check=True).stdout
    return Path(said.split()[-1]) / "include"


def program(name: str) -> dict[str, Any]:
    """How programs.py calls a program."""
    _, _, arguments = PROGRAMS[name]
    return {
        "collection": "kernels", "name": name, "size": "small", "folder": "src",
        "binary": f"binaries/{name}", "sources": [], "flags": [], "modules": [],
        "arguments": arguments, "runs_in": "", "changes": [], "unseen": True,
    }  # fmt: skip


def build(folder: Path, name: str) -> str:
    """Build a program; return what went wrong."""
    source, options, _ = PROGRAMS[name]
    words = [word.replace("{src}", str(folder / "src")) for word in (*options, "{src}/" + source)]
    out = folder / "binaries" / name
    command = ["timeout", str(SECONDS), "nvcc", *FLAGS, *CODE, "-o", str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
    return "\n".join(errors[:4] or ["failed"]) if done.returncode else ""


def build_all(folder: Path, names: list[str]) -> None:
    """Build programs, all at a time."""
    (folder / "binaries").mkdir(exist_ok=True)
    with ThreadPoolExecutor(16) as pool:
        for name, problem in zip(names, pool.map(lambda n: build(folder, n), names), strict=True):
            print(name, problem or "built", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--build":
        build_all(Path(sys.argv[2]).resolve(), sys.argv[3:] or [*PROGRAMS])
    else:
        pack(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())

"""Let JAX see cutrace's device, and XLA compile for it without measuring on it.

XLA generates all of its kernels, so they are recorded. JAX looks for the file of NVIDIA's kernel
module before it loads its CUDA plugin. XLA tunes matrix products by running every candidate behind
a kernel that waits for the host; here the first candidate is taken. It launches operations as a
graph, which hides the range of each. It leaves convolutions to
cuDNN, unless the passes that do so are off. The code runs in the user's Python, so it imports the
standard library only.
"""

import importlib.util
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = {
    "--xla_gpu_autotune_level": "0",  # measure no candidates
    "--xla_gpu_enable_command_buffer": "",  # each launch is in the range of its operation
    "--xla_disable_hlo_passes": "conv-rewriter,conv-kind-assignment",  # they call cuDNN
}
DEFAULTS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # three quarters of the device's memory otherwise
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # CUPTI has no version without NVIDIA's own driver
}

PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")

ASSEMBLER = r"""#!/bin/sh
# Return PTX in place of machine code: the recorder executes that. XLA's questions go to ptxas
# itself: its version, and the newest PTX that it takes, by a module of version 99.
for word; do
    case $word in
    --output-file=*) output=${word#*=} ;;
    -o?*) output=${word#-o} ;;
    -*) ;;
    *)
        case $before in
        -o | --output-file) output=$word ;;
        *) [ -f "$word" ] && input=$word ;;
        esac
        ;;
    esac
    before=$word
done
if [ -z "$input" ] || [ -z "$output" ] || grep -q '^ *[.]version *99' "$input"; then
    exec PTXAS "$@"
fi
{ cat "$input"; printf '\0'; } > "$output"
"""


def show_device(hardware_utils: Any) -> None:
    """Make `jax._src.hardware_utils` find a device; set XLA's options, which it reads later."""
    if not any(map(importlib.util.find_spec, PLUGINS)):
        print(
            "cutrace: JAX runs on the CPU, since its plugin for CUDA is missing: pip install"
            ' "jax[cuda13]"',
            file=sys.stderr,
        )
        return
    hardware_utils.has_visible_nvidia_gpu = lambda: True
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get("XLA_FLAGS", "")
    more = [f"{name}={value}" for name, value in FLAGS.items() if name not in flags]
    if more:
        os.environ["XLA_FLAGS"] = " ".join((flags, *more)).lstrip()
        print(
            "cutrace: XLA measures no candidates of a kernel, compiles convolutions itself and"
            " launches operations one by one:"
            f" {' '.join(more)}; $XLA_FLAGS with the same option changes that",
            file=sys.stderr,
        )


def keep_ptx(lib: Any) -> None:
    """Give XLA a toolkit whose ptxas returns PTX, in place of `jax._src.lib`'s.

    XLA searches that folder, Mosaic GPU searches $PATH.
    """
    if not lib.cuda_path or not (ptxas := Path(lib.cuda_path, "bin", "ptxas")).is_file():
        return
    scratch = os.environ.get("CUTRACE_SCRATCH", "")  # removed together with the recorder
    folder = Path(tempfile.mkdtemp(dir=scratch if os.path.isdir(scratch) else None))
    for part in Path(lib.cuda_path).iterdir():
        if part.name != "bin":
            (folder / part.name).symlink_to(part)
    own = folder / "bin" / "ptxas"
    own.parent.mkdir()
    own.write_text(ASSEMBLER.replace("PTXAS", shlex.quote(str(ptxas))))
    own.chmod(0o755)
    if (linker := ptxas.with_name("nvlink")).is_file():
        own.with_name("nvlink").symlink_to(linker)
    os.environ["PATH"] = f"{own.parent}:{os.environ.get('PATH', os.defpath)}"
    lib.cuda_path = str(folder)


CHANGES: dict[str, Callable[[Any], None]] = {
    "jax._src.hardware_utils": show_device,
    "jax._src.lib": keep_ptx,
}

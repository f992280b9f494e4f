"""Put the programs of public collections into one folder that scripts/capture/programs.py runs.

    python scripts/capture/pack_programs.py FOLDER CHECKOUT...

The folder goes to the machine with the GPU, whole. It has the sources with their constants changed
as scripts/try_programs.toml says, those again as larger_programs.toml says, the scripts that are
needed there, and `programs.json`: what each program is built of and called with, in the order in
which they are captured. Nothing of the collections is kept in this tree.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from try_collections import SETTINGS, Program, find_programs  # noqa: E402
from try_programs import change_constants  # noqa: E402

LARGER = HERE / "larger_programs.toml"
SIZES = {"small": SETTINGS, "large": LARGER}
FIRST = (
    ("polybenchGpu", "small"), ("polybenchGpu", "large"), ("gpu-rodinia", "small"),
    ("gpu-rodinia", "large"), ("cuda-samples", "large"), ("cuda-samples", "small"),
)  # fmt: skip
NOT_THERE = re.compile(
    r"IPC|^cdp|^simpleAssert|^mummergpu|threadMigration|p2pBandwidth|Conditional|segmentationTree"
)
"""What the profiler does not see (kernels that kernels launch), and what ends without a launch."""
LARGEST = 4 << 20
"""Bytes of a file that is taken along."""
UNREAD = re.compile(
    r"\.(docx?|pdf|png|jpg|gif|md|dll|lib|a|so|sln|flo|gz)$|^(doc|GL|lib|ref_0\d.ppm|PCB.*|test1.*nv12)$"
    r"|teapot512_(cuda|gold)|^3D$|image_out"
)
"""Files and folders of which nothing is built."""


def chosen(checkouts: list[Path]) -> Iterator[tuple[str, Program]]:
    """List the programs and the sizes at which they are run, the most useful first."""
    found = [
        (size, program)
        for size, file in SIZES.items()
        for program in find_programs(checkouts, file)
        if program.sources and not program.left_out and not NOT_THERE.search(program.name)
        if size == "small" or _is_named(program)
    ]
    order = {(name, size): n for n, (name, size) in enumerate(FIRST)}
    yield from sorted(found, key=lambda each: order[each[1].collection, each[0]])


def _is_named(program: Program) -> bool:
    """Whether the file of larger sizes names a program."""
    text = LARGER.read_text()
    return bool(re.search(rf'^(\[.*)?"?{re.escape(program.name)}"?(\]| =)', text, re.MULTILINE))


def pack(program: Program, size: str, folder: Path) -> dict[str, Any]:
    """Copy what a program is built of; return how it is built and called."""
    inside = program.folder.relative_to(program.root)
    root = folder / size / program.collection
    for name in ("Common", "common", "cuda/util", "CUDA/common"):
        if (program.root / name).is_dir() and not (root / name).exists():
            _copy(program.root / name, root / name)
    if (root / inside).exists():  # two programs of one folder, with other constants
        root = folder / size / f"{program.collection}-{program.name.replace(':', '-')}"
    _copy(program.folder, root / inside)
    change_constants(root / inside, program)
    samples = folder / "small" / "cuda-samples"
    return {
        "collection": program.collection,
        "name": program.name,
        "size": size,
        "folder": str((root / inside).relative_to(folder)),
        "sources": program.sources,
        "flags": list(_flags(program, samples)),
        "modules": program.modules,
        "arguments": program.arguments,
        "runs_in": program.runs_in,
        "changes": [new for _, new in program.changes],
    }


def _flags(program: Program, samples: Path) -> Iterator[str]:
    """The options of a program, with NVRTC as the other machine has it."""
    for flag in program.flags:
        if "nvrtc" not in flag and flag != "-Xlinker":
            yield re.sub(r"-I.*/Common$", "-I{folder}/small/cuda-samples/Common", flag)
    if any("nvrtc" in flag for flag in program.flags):
        yield "-lnvrtc"


def _copy(source: Path, target: Path) -> None:
    def unwanted(folder: str, names: list[str]) -> list[str]:
        paths = [Path(folder, name) for name in names]
        return [p.name for p in paths if UNREAD.search(p.name) or p.is_symlink() or _is_big(p)]

    shutil.copytree(source, target, ignore=unwanted, dirs_exist_ok=True)


def _is_big(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > LARGEST


def main(folder: Path, checkouts: list[Path]) -> None:
    """Fill the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = [pack(program, size, folder) for size, program in chosen(checkouts)]
    (folder / "programs.json").write_text(json.dumps(packed, indent=1))
    runtime = HERE.parents[1] / "tracer" / "program" / "runtime"
    for script in (*HERE.glob("*.py"), HERE.parent / "try_inputs.py", *runtime.glob("[lo]*er.h"),
                   runtime / "legacy.h"):  # fmt: skip
        shutil.copy(script, folder)
    print(f"{len(packed)} programs in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name).resolve() for name in sys.argv[2:]])

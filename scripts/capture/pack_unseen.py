"""Draw programs that were never run, and put them into a folder that programs.py runs.

    python scripts/capture/pack_unseen.py FOLDER CHECKOUT...

unseen_programs.toml says how many of each collection, and what makes them small. Each is built once
here, by the nvcc that is first in the search path: machine code of sm_90 and PTX in one file, with
NVIDIA's static runtime; what does not build is left to the other machine. `compare_unseen.py`
records the same files. Nothing of the collections is kept in this tree.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from pack_programs import UNREAD  # noqa: E402
from try_collections import Program  # noqa: E402
from try_programs import change_constants  # noqa: E402
from try_strangers import draw, find_strangers  # noqa: E402

SETTINGS = Path(__file__).with_name("unseen_programs.toml")
CODE = ("-gencode", "arch=compute_90,code=[sm_90,compute_90]")
_ARCHITECTURE = re.compile(r"-arch=\S+|-gencode \S+|-lcuda\b")
"""Options that are not taken: the code is what we say; none calls the driver's interface."""
SECONDS = 300


def unseen(checkouts: list[Path]) -> Iterator[Program]:
    """The programs that are drawn."""
    settings = tomllib.loads(SETTINGS.read_text())
    for checkout in checkouts:
        name = checkout.name.replace("+", "/")
        said = settings.get(name, {})
        found = (p for p in _found(checkout, name, said) if not _is_skipped(p, said))
        for program in draw(found, said.get("draw", 0) + said.get("from", 0))[
            said.get("from", 0) :
        ]:
            yield _with(program, checkout, said)


def _found(checkout: Path, name: str, said: Mapping[str, Any]) -> Iterator[Program]:
    if "folders" not in said:
        yield from find_strangers(checkout)
    for folder in sorted(checkout.glob(said.get("folders", "-"))):
        if (folder / said["sources"][0]).is_file():
            called = "/".join(folder.parts[-2:])
            yield Program(name, called, checkout, folder, tuple(said["sources"]))


def _is_skipped(program: Program, said: Mapping[str, Any]) -> bool:
    if "skip" in said and re.search(said["skip"], program.name):
        return True
    texts = ((program.folder / name).read_text(errors="replace") for name in program.sources)
    return "skip_text" in said and any(re.search(said["skip_text"], text) for text in texts)


def _with(program: Program, checkout: Path, said: Mapping[str, Any]) -> Program:
    own = said.get("programs", {}).get(program.name, {})
    flags = [*program.flags, *said.get("flags", ()), *own.get("flags", ()), "-I{home}"]
    words = _ARCHITECTURE.sub("", " ".join(flags)).split()
    for word, place in {"{root}": str(checkout), "{home}": str(program.folder)}.items():
        words = [flag.replace(word, place) for flag in words]
    return replace(
        program,
        sources=(*program.sources, *own.get("more", ())),
        flags=tuple(words),
        arguments=own.get("arguments", ""),
        changes=tuple(own.get("changes", {}).items()),
    )


def pack(program: Program, folder: Path) -> dict[str, Any]:
    """Copy a program's folder, build it there; return how it is called.

    The binary lies three folders deep in it: programs look for their data from where they are.
    """
    name = re.sub(r"\W+", "-", f"{program.collection}-{program.name}")
    home = folder / "src" / name
    shutil.copytree(
        program.folder,
        home,
        ignore=lambda _, names: [each for each in names if UNREAD.search(each)],
        ignore_dangling_symlinks=True,
    )
    change_constants(home, program)
    binary = home / "made" / "of" / "it" / name
    binary.parent.mkdir(parents=True)
    command = ["nvcc", "-O3", "-lineinfo", *CODE, "-o", str(binary), *program.sources]
    subprocess.run([*command, *program.flags], cwd=home, timeout=SECONDS)
    return {
        "collection": program.collection,
        "name": program.name,
        "size": "small",
        "folder": str(home.relative_to(folder)),
        "binary": str(binary.relative_to(folder)),
        "sources": program.sources,
        "flags": program.flags,
        "modules": [],
        "arguments": program.arguments,
        "runs_in": "",
        "changes": [new for _, new in program.changes],
        "unseen": True,
    }


def mixed(programs: Iterable[Program]) -> list[Program]:
    """Order them by the hash of their names: what no time is left for is then drawn, too."""
    return sorted(programs, key=lambda p: hashlib.sha256(p.name.encode()).digest())


def main(folder: Path, checkouts: list[Path]) -> None:
    """Fill the folder."""
    folder.mkdir(parents=True)
    packed = [pack(program, folder) for program in mixed(unseen(checkouts))]
    (folder / "programs.json").write_text(json.dumps(packed, indent=1))
    for script in (*HERE.glob("*.py"), HERE.parent / "try_inputs.py"):
        shutil.copy(script, folder)
    print(f"{len(packed)} programs in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), [Path(name).resolve() for name in sys.argv[2:]])

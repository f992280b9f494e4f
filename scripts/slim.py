"""Delete files of packages that cutrace never loads: a quarter of an installation's size.

python scripts/slim.py PREFIX     # the environment of this Python, which must lie there

The Dockerfile, scripts/demo and scripts/test call it for environments that they have made. A
package that something else needs, too, stays whole.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

NEVER_LOADED = {
    "nvidia-cuda-nvrtc-cu12": r".*\.alt\..*",  # NVRTC once more
    "nvidia-cuda-nvcc-cu12": r".*nvvm/(lib64|bin)/(lib)?nvvm.*",  # its compiler: only ptxas runs
    # a network protocol, Amazon's storage (cutrace reads it by fsspec), C++ headers, tests
    "pyarrow": r"pyarrow/(libarrow_(python_)?(flight|s3)\.|_(flight|s3fs)\.|include/|tests/).*",
    "numpy": r"numpy/(.*/)?tests/.*",
    "networkx": r"networkx/(.*/)?tests/.*",
}
"""Files by the package that has them, as patterns of their paths."""
_NAME = re.compile(r"[\w.-]+")


def normal(name: str) -> str:
    """Return a package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(distribution: Distribution) -> set[str]:
    """Return the packages that a package needs, extras left out."""
    texts = [text for text in distribution.requires or () if "extra ==" not in text]
    return {normal(match[0]) for text in texts if (match := _NAME.match(text))}


def find_files(every: list[Distribution]) -> Iterator[Path]:
    """Yield the files to delete, of packages that nothing but cutrace needs."""
    for distribution in every:
        name = normal(distribution.metadata["Name"])
        pattern = NEVER_LOADED.get(name)
        if pattern is None:
            continue
        users = [normal(d.metadata["Name"]) for d in every if name in requirements(d)]
        if others := sorted({*users} - {"cutrace"}):
            print(f"{name} stays whole for {', '.join(others)}")
            continue
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if re.fullmatch(pattern, file.as_posix()) and path.is_file():
                yield path


def main() -> int:
    """Delete them, and say what went."""
    if [Path(each).resolve() for each in sys.argv[1:]] != [Path(sys.prefix).resolve()]:
        print(f"{__doc__}\nThe environment of this Python is {sys.prefix}", file=sys.stderr)
        return 2
    files = list(find_files(list(distributions())))
    total = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink()
    print(f"{len(files)} files deleted, {total / 2**20:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write tracer/program/static_runtimes.csv from the packages of NVIDIA's runtime on PyPI.

python scripts/write/static_runtimes.py [VERSION...]: without versions, all of CUDA 12.9 and 13.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from cutrace.tracer.program.static_runtime import StaticRuntime, read_archive, write_table

PACKAGES = {"nvidia-cuda-runtime-cu12": "12.9", "nvidia-cuda-runtime": "13"}


def versions_of(package: str) -> list[str]:
    """Return the versions of a package, the oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = re.search(r"Available versions: (.*)", text)
    versions = listed[1].split(", ") if listed else []
    return sorted(
        (each for each in versions if each.startswith(PACKAGES[package])),
        key=lambda version: [int(part) for part in version.split(".")],
    )


def read_wheel(package: str, version: str, folder: Path) -> StaticRuntime:
    """Download a version; return what its archive says."""
    target = folder / version
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(target)]
    subprocess.run([*command, f"{package}=={version}"], check=True, stderr=subprocess.DEVNULL)
    with zipfile.ZipFile(next(target.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/libcudart_static.a"))
        return read_archive(Path(wheel.extract(name, target)), version)


def main(words: list[str]) -> None:
    """Write the table."""
    with tempfile.TemporaryDirectory() as name:
        write_table(
            [
                read_wheel(package, version, Path(name))
                for package in PACKAGES
                for version in versions_of(package)
                if not words or version in words
            ]
        )


if __name__ == "__main__":
    main(sys.argv[1:])

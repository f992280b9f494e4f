"""What a program is told about the device, against an H200 (CUDA 13).

All properties and attributes, limits and the default pool's attributes, by
scripts/capture/properties.cu.
"""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from program_run import cutrace

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "scripts" / "capture" / "properties.cu"

_NUMBERS = {
    "the board in its machine: error correction, its place and number on the bus": (
        32,
        34,
        139,
        140,
    ),
    "other processes' or other devices' memory, for which there is nothing here": (
        *(96, 103, 110, 114, 116, 117, 118, 119, 124, 125, 128),
    ),
    "arrays that are sparse, or mapped later than they are made, are refused": (112, 121),
    "memory of the host is not made by cuMemCreate": (141, 145),
    "of a later CUDA 13 than the H200's driver": tuple(range(148, 161)),
}
DIFFERENT = {
    *(f"attribute {number}" for numbers in _NUMBERS.values() for number in numbers),
    *(
        f"property {name}"
        for name in (
            *("ECCEnabled", "pciBusID", "pciDeviceID", "gpuPciDeviceID", "gpuPciSubsystemID"),
            *("gpuDirectRDMASupported", "gpuDirectRDMAFlushWritesOptions"),
            *("gpuDirectRDMAWritesOrdering", "memoryPoolSupportedHandleTypes", "ipcEventSupported"),
            *("timelineSemaphoreInteropSupported", "sparseCudaArraySupported"),
            "deferredMappingCudaArraySupported",
        )
    ),
    "limit 1",  # printf's buffer: 1 MB, as the CUDA C++ Programming Guide says
    "limit 6",  # level 2 for persisting accesses: nothing is set aside here
}


def _read(lines: Iterable[str]) -> dict[str, str]:
    return {row["question"]: row["answer"] for row in csv.DictReader(lines)}


def test_every_answer_about_the_device_is_a_chips(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(SOURCE.read_text())
    options = ("-d", "h200", "--nvcc-flags=-lcuda", "--only-launches", "0")
    done = cutrace(tmp_path, "record", "app.cu", *options, "--")
    answers = _read(io.StringIO(done.out))
    expected = _read((HERE / "properties.csv").read_text().splitlines())
    assert len(expected) > 280
    different = {key for key, value in expected.items() if answers.get(key) != value}
    assert different == DIFFERENT, done.err

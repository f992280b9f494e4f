"""Where allocations lie, against an H200 (CUDA 13), by scripts/capture/allocations.cu.

Addresses differ; both keep the powers of two that divide all addresses of a range of sizes.
"""

import csv
from pathlib import Path

import pytest
from program_run import record, record_built

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "scripts" / "capture" / "allocations.cu"
MB = 1 << 20
ENDS = (3 * MB // 2, 32 * MB, 1 << 62)
"""Of the ranges: a chip has sizes of up to 1 MB and a half in pages that they share."""


def _smallest(alignments: dict[int, int]) -> list[int]:
    starts = (0, *ENDS)
    return [
        min(alignment for size, alignment in alignments.items() if start < size <= end)
        for start, end in zip(starts, ENDS, strict=False)
    ]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("malloc", [512, 2 * MB, 32 * MB]),
        ("managed", [512, 2 * MB, 32 * MB]),
        ("async", [512, 512, 512]),
        ("pool", [512, 512, 512]),
        ("driver", [512, 2 * MB, 32 * MB]),
        ("host", [512, 2 * MB, 32 * MB]),
        ("hostalloc", [512, 2 * MB, 32 * MB]),
    ],
)
def test_allocations_are_aligned_as_on_a_chip(
    tmp_path: Path, how: str, expected: list[int]
) -> None:
    with (HERE / "allocations.csv").open() as file:
        chip = {int(row["bytes"]): int(row[how]) for row in csv.DictReader(file) if row[how]}
    options = ("-d", "h200", "--only-launches", "0")
    done = record_built(tmp_path, SOURCE.read_text(), how, words=["-lcuda"], options=options)
    ours: dict[int, int] = {}
    for line in done.out.splitlines():
        words = line.split()
        if len(words) >= 5 and words[-3].isdigit():
            size, alignment = int(words[-3]), int(words[-1])
            ours[size] = min(alignment, ours.get(size, alignment))
    assert ours.keys() == chip.keys(), done.err
    assert _smallest(chip) == _smallest(ours) == expected


PITCHES = r"""
int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        void *place; size_t pitch;
        CHECK(cudaMallocPitch(&place, &pitch, atoi(argv[i]), atoi(argv[i + 1])));
        printf("%zu %llu\n", pitch, (unsigned long long)place % (2 << 20));
    }
    return 0;
}
"""


def test_rows_of_a_pitched_array_begin_as_on_a_chip(tmp_path: Path) -> None:
    """On an H100, by scripts/capture/libraries.cu: offsets in blocks of 2 MB."""
    with (HERE / "pitches.csv").open() as file:
        chip = [
            (row["width"], row["rows"], int(row["pitch"]), int(row["offset"], 16))
            for row in csv.DictReader(file)
        ]
    words = [word for width, rows, *_ in chip for word in (width, rows)]
    done = record(tmp_path, PITCHES, *words)
    ours = [tuple(map(int, line.split())) for line in done.out.splitlines()]
    assert [pitch for pitch, _ in ours] == [pitch for *_, pitch, _ in chip], done.err
    for (_, rows, pitch, theirs), (_, offset) in zip(chip, ours, strict=True):
        assert offset % 512 == theirs % 512 == 0
        if pitch * int(rows) > MB:  # a block of its own
            assert offset == theirs == 0

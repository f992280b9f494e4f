"""Hostile sizes and pitches, against an H200 (CUDA 13), by scripts/capture/sizes.cu.

`sizes.json` has a letter for each answer of a call, in the program's order: the status, and that of
the synchronization behind it. The H200 had answered for the calls that are in it when its time was
over.
"""

import json
from collections import Counter
from pathlib import Path

from program_run import cutrace

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "scripts" / "capture" / "sizes.cu"
HOSTILE = 1 << 32
LISTED = {
    "cuMemAddressReserve 0": "2 for an absurd alignment, which a chip calls an invalid value",
    "cuTexObjectCreate linear": "a texture over no bytes is refused by name",
    "cudaGraphAddMemcpyNode1D 0": "a node that copies nothing is accepted",
    "cudaMemAdvise device": "advice on memory that is not managed is accepted",
}
PLACED = "it depends on what lies behind the array"
DIFFERENT = {
    "the chip lets the size wrap, or takes its low bits": 296,
    "the chip's library crashes": 125,
    "the chip faults": 35,
    LISTED["cuMemAddressReserve 0"]: 3,
    LISTED["cuTexObjectCreate linear"]: 1,
    LISTED["cudaGraphAddMemcpyNode1D 0"]: 1,
    LISTED["cudaMemAdvise device"]: 1,
}


def _kind(call: str, arguments: list[int], chip: str, ours: str) -> str:
    """Say why an answer differs."""
    status = int(ours.split()[0])
    if "signal" in chip and status:
        return "the chip's library crashes"
    if any(number in chip for number in ("700", "719", "720")) and status:
        return "the chip faults"
    if chip == "0 0" and status and max(arguments) >= HOSTILE:
        return "the chip lets the size wrap, or takes its low bits"
    if chip == "1 0" and arguments[4:] and HOSTILE in arguments:
        return PLACED
    return LISTED.get(call, f"unknown: {call} {arguments} {chip} {ours}")


def test_each_size_has_the_status_of_a_chip(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(SOURCE.read_text())
    options = ("-d", "h200", "--nvcc-flags=-lcuda -std=c++17 -w", "--only-launches", "0")
    done = cutrace(tmp_path, "record", "app.cu", *options, "--")
    answers: dict[str, list[tuple[list[int], str]]] = {}
    for line in done.out.splitlines():
        question, is_answer, answer = line.partition(" = ")
        if is_answer:
            call, *numbers = question.rsplit(" ", 10)
            answers.setdefault(call, []).append(([int(n, 16) for n in numbers], answer))
    expected = json.loads((HERE / "sizes.json").read_text())
    kinds: Counter[str] = Counter()
    for call, letters in expected["calls"].items():
        assert len(answers[call]) >= len(letters), done.err
        for letter, (arguments, ours) in zip(letters, answers[call], strict=False):
            chip = expected["letters"][letter]
            if ours != chip:
                kinds[_kind(call, arguments, chip, ours)] += 1
    assert sum(map(len, expected["calls"].values())) > 4400
    del kinds[PLACED]  # where the host's library puts what lies behind an array
    assert dict(kinds) == DIFFERENT

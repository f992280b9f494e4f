"""Instructions give what the silicon gives: captured on an NVIDIA H200, driver 580.159.04.

`instructions/*.txt` lists the forms, `scripts/capture/conformance.py` wrote `conformance.parquet`
from them. Results are equal bit for bit; for approximate functions they differ by no more than the
bound that the PTX ISA states, beside the form in its table, and one unit in the last place.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from ptx.ptx_case import ALIASES, Case, expand, read_case, stored_dtype
from ptx.ptx_run import run_case
from ptx.ptx_values import checksum, operands

HERE = Path(__file__).parent
FLOATS: dict[str, type] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
FRACTION = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
LEAST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}


@cache
def captured() -> dict[str, tuple[int, bytes]]:
    """Checksum of the operands and bytes of the results, by the text of the case."""
    table = pq.read_table(HERE / "conformance.parquet")
    return {row["instruction"]: (row["operands"], row["results"]) for row in table.to_pylist()}


def lines() -> Iterator[Any]:
    for path in sorted((HERE / "instructions").glob("*.txt")):
        for line in path.read_text().splitlines():
            if line.partition("# ")[0].strip():
                yield pytest.param(line, id=f"{path.stem}-{line.partition(' : ')[0].strip()[:60]}")


@pytest.mark.parametrize("line", list(lines()))
def test_an_instruction_gives_what_the_silicon_gives(line: str) -> None:
    for case in map(read_case, expand(line)):
        checked, results = captured()[case.text]
        assert checked == checksum(case.sources), f"{case.text}: its operands have changed"
        sources = operands(case.sources)
        lanes = len(sources[0]) if sources else 32
        for number, (kind, ours) in enumerate(
            zip(case.results, run_case(case, sources), strict=True)
        ):
            theirs = np.frombuffer(results[: ours.nbytes], stored_dtype(kind))
            results = results[ours.nbytes :]
            wrong = np.flatnonzero(~close(case, kind, ours, theirs, sources))
            given = [[hex(s[lane]) for s in sources] for lane in wrong[:3]]
            assert not wrong.size, (
                f"{case.text}: result {number} of {wrong.size} of {lanes} lanes: of {given} "
                f"{ours[wrong[:3]]}, the silicon has {theirs[wrong[:3]]}"
            )


def close(
    case: Case, kind: str, ours: NDArray[Any], theirs: NDArray[Any], sources: list[NDArray[Any]]
) -> NDArray[np.bool_]:
    """Where results are equal, or no further apart than the case's bound."""
    equal: NDArray[np.bool_] = ours == theirs
    if not case.bound or equal.all():
        return equal
    if case.bound == "upper word":
        mine, true = ((x >> np.uint64(32)).astype(np.int64) for x in (ours, theirs))
        equal |= (np.abs(mine - true) <= 1) & (ours.astype(np.uint32) == 0)
        return equal
    single = kind.removesuffix("x2")
    parts = [(ours, theirs)]
    if single != kind:
        halves = [(x.astype(np.uint16), (x >> np.uint32(16)).astype(np.uint16)) for x in parts[0]]
        parts = list(zip(*halves, strict=True))
    size = np.abs(number(ALIASES.get(case.sources[0], single), sources[0])) if kind == "f32" else 0
    near = [
        (a == b) | within(case.bound, number(single, a), number(single, b), single, size)
        for a, b in parts
    ]
    equal |= np.logical_and.reduce(near)
    return equal


def number(kind: str, bits: NDArray[Any]) -> NDArray[np.float64]:
    """Patterns of bits as float64."""
    if kind == "bf16":
        bits, kind = bits.astype(np.uint32) << np.uint32(16), "f32"
    with np.errstate(invalid="ignore"):
        return bits.view(FLOATS[kind]).astype(np.float64)


def within(bound: str, ours: Any, theirs: Any, kind: str, size: Any) -> NDArray[np.bool_]:
    """Where the distance is within `bound` (and a last place): of the first range that has `size`.

    A bound is `2 ulp`, or alternatives like `absolute 2^-22 or relative 2^-22`; ranges are parted
    by commas: `absolute 2^-20.5 to 6.28, absolute 2`.
    """
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.abs(ours))) - FRACTION[kind]
        last = np.exp2(np.maximum(exponent, LEAST[kind]))
        allowed = np.zeros_like(ours)
        for part in reversed(bound.split(", ")):
            words, _, limit = part.partition(" to ")
            amount = np.maximum.reduce([measure(w, ours, last) for w in words.split(" or ")])
            allowed = np.where(size <= float(limit), amount, allowed) if limit else amount
        near: NDArray[np.bool_] = (ours == theirs) | (np.abs(ours - theirs) <= allowed + last)
        return near


def measure(words: str, ours: Any, last: Any) -> Any:
    """A bound in words as a distance from `ours`."""
    first, _, second = words.partition(" ")
    if second == "ulp":
        return (int(first) - 1) * last
    amount = 2.0 ** float(second.removeprefix("2^")) if "^" in second else float(second)
    return amount * np.abs(ours) if first == "relative" else amount + 0 * ours

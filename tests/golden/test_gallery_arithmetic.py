import re
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

TABLES = sorted(Path(str(files("cutrace.traces") / "gallery")).glob("*/expected.toml"))
COUNTER = re.compile(r"(?!devices)\w+ = (?P<kept>\[[^#]*\])\s*(# (?P<arithmetic>.*))?")


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.parent.name)
def test_the_arithmetic_beside_every_expected_integer_gives_it(table: Path) -> None:
    counters = [found for line in table.read_text().splitlines() if (found := COUNTER.match(line))]
    assert counters
    for found in counters:
        kept = tomllib.loads(f"kept = {found['kept']}")["kept"]
        assert agrees(kept, found["arithmetic"] or "0"), found[0]


def agrees(kept: list[float | str], arithmetic: str) -> bool:
    """Whether `1024 blocks * [1, 2]` is `[1024, 2048]`; words say what a factor is."""
    numbers = re.sub(r"[A-Za-z][A-Za-z-]*", "", arithmetic)
    vectors = numbers.replace("[", "vector([").replace("]", "])")
    computed = np.broadcast_to(eval(vectors, {"vector": np.array}), len(kept))
    return all(want in ("refused", float(got)) for want, got in zip(kept, computed, strict=True))

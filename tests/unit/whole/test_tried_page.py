"""docs/support.md is what its script writes from tests/validate/tried."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "write" / "tried.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")


@pytest.fixture
def script() -> dict[str, Any]:
    """What the script defines."""
    return runpy.run_path(str(SCRIPT))


def test_the_page_is_what_the_script_writes(script: dict[str, Any]) -> None:
    written = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    assert written == script["text"](), "run scripts/write/tried.py"


def test_a_program_with_a_refused_launch_is_not_whole(script: dict[str, Any]) -> None:
    row = {"ran": "yes", "check": "has none", "why": ""}
    assert script["is_whole"](row)
    assert script["is_whole"](row | {"why": "launch 0: k.cu:3: an assertion failed in block 1"})
    assert not script["is_whole"](row | {"why": "launch 0: k.cu:3: reads 4 bytes outside"})
    assert not script["is_whole"](row | {"check": "failed"})

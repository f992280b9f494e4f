"""docs/api.md has every public name, as it is."""

import runpy
import sys
from pathlib import Path

import pytest

import cutrace

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "api.md"
SCRIPT = ROOT / "scripts" / "write" / "api.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="types are written otherwise there")
def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == runpy.run_path(str(SCRIPT))["text"](), (
        "run scripts/write/api.py"
    )


def test_every_public_name_has_its_place() -> None:
    text = PAGE.read_text("utf-8")
    for name in cutrace.__all__:
        assert f"\n### {name}\n" in text, name
    assert "numpy._typing" not in text


def test_attributes_are_not_written_as_calls() -> None:
    text = PAGE.read_text("utf-8")
    assert ".counters: Mapping[str, int | float | None]" in text  # launch.counters["branches"]
    assert ".table(grouping: str) -> DataFrame" in text

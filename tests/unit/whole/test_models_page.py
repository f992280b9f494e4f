"""docs/models.md is what the models say of themselves."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "models"
SCRIPT = ROOT / "scripts" / "write" / "models.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_document_of_models_is_current(script: dict[str, Any]) -> None:
    written = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert written == script["text"](), "run scripts/write/models.py"


@pytest.mark.parametrize("name", [path.name for path in sorted(MODELS.glob("[!_]*.py"))])
def test_every_model_says_what_it_leaves_out_and_where_its_rules_come_from(
    name: str, script: dict[str, Any]
) -> None:
    page = script["docstring"](MODELS / name)
    for part in ("What the hardware does", "What is modelled", "What is not", "Source: "):
        assert part in page, f"{name} lacks `{part}`"
    assert "What is modelled" in script["page"](MODELS / name)
    assert "What is not" in script["page"](MODELS / name)

"""Write traces/manifest.schema.json: `python scripts/write/manifest_schema.py`."""

import json
from pathlib import Path

from cutrace.traces.folder.manifest_schema import manifest_schema

PAGE = Path(__file__).parents[2] / "traces" / "manifest.schema.json"


def text() -> str:
    """The whole file."""
    return json.dumps(manifest_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

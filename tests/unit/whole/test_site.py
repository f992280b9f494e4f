"""The site's pages: all that its contents name, with links that lead to pages or nowhere else."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SITE = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "write" / "site.py"))
TARGET = re.compile(r"\]\(([^)\s]+)\)")


def listed(nav: dict[str, Any]) -> Iterator[str]:
    for value in nav.values():
        yield from (value,) if isinstance(value, str) else listed(value)


def test_the_contents_name_every_page_once() -> None:
    assert sorted(listed(SITE["NAV"])) == sorted(SITE["pages"]())
    assert SITE["settings"]().count(".md") == len(SITE["pages"]())


def test_links_lead_to_pages_and_pictures_of_the_site(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    SITE["write_source"](folder)
    there = {path.name for path in folder.iterdir()}
    assert {"index.md", "lanes.svg", "report.png"} <= there
    for page in folder.glob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        for target in TARGET.findall(re.sub(r"`[^`\n]*`", "", text)):
            name = target.partition("#")[0]
            assert not name or name in there or name.startswith("http"), (page.name, target)


def test_blocks_that_are_files_keep_their_language_alone(tmp_path: Path) -> None:
    SITE["write_source"](tmp_path / "site")
    text = (tmp_path / "site" / "index.md").read_text("utf-8")
    assert "```cuda\n// cutrace: scale" in text
    assert "```cuda scale.cu" not in text

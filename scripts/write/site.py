"""Build the documents as a site with search: build/site, for a browser or a server of files.

    pip install ".[site]" && python scripts/write/site.py

The pages are the documents as they are, tests run what they show; only links out of docs/ change.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
ELSEWHERE = {
    "index.md": ROOT / "README.md",
    "format.md": ROOT / "traces" / "FORMAT.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "changes.md": ROOT / "CHANGELOG.md",
}
"""Pages from outside docs/."""
NAV: dict[str, str | dict[str, str]] = {
    "Home": "index.md",
    "Tutorial": {"From 32 sectors to 4": "transpose.md"},
    "How to": {
        "Launch kernels": "launching.md",
        "Run whole programs": "programs.md",
        "Run Python programs": "python.md",
        "Read and serve reports": "report.md",
        "Check in CI": "check.md",
        "Let a program edit kernels": "agents.md",
        "Try what if": "what-if.md",
        "Write a model": "own-models.md",
        "Sweep": "sweep.md",
        "Come from another tool": "coming.md",
        "Exchange traces": "exchange.md",
    },
    "Reference": {
        "Python": "api.md",
        "Counters": "counters.md",
        "Vocabularies": "vocabularies.md",
        "Devices": "devices.md",
        "Models": "models.md",
        "Instructions": "instructions.md",
        "Textures": "textures.md",
        "What programs may use": "support.md",
        "Formats": "formats.md",
        "The trace": "format.md",
        "Glossary": "glossary.md",
    },
    "Explanation": {
        "Architecture": "architecture.md",
        "How programs are recorded": "recording.md",
        "What limits a launch": "limits.md",
        "How long a launch takes": "time.md",
        "How right": "validation.md",
        "How fast": "performance.md",
    },
    "Contributing": "contributing.md",
    "Changes": "changes.md",
}
INWARD = ("founding-documents.md",)
"""Pages for those who work on cutrace."""
NAMED = re.compile(r"^```(\w+) \S+$", re.M)
"""The beginning of a block that is a file: of a site it has the language alone."""
LINK = re.compile(r"(\]\()([^)#\s]+\.(?:md|png|svg|toml|ipynb))((?:#[^)\s]*)?\))")


def pages() -> dict[str, Path]:
    """Every page by its name on the site; docs/index.md is README here."""
    own = {path.name: path for path in (ROOT / "docs").glob("*.md")}
    return {name: path for name, path in {**own, **ELSEWHERE}.items() if name not in INWARD}


def linked(text: str, page: Path, names: dict[Path, str]) -> str:
    """A page's text with its links as they are on the site; what is not on it is no link."""

    def replace(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        if target == ROOT / "docs" / "index.md":
            return f"{found[1]}index.md{found[3]}"
        if target.parent == ROOT / "docs" and target.suffix != ".md":
            return f"{found[1]}{target.name}{found[3]}"
        if target in names:
            return f"{found[1]}{names[target]}{found[3]}"
        return f"{found[1]}#{found[3].lstrip('#')}" if not target.exists() else f"{found[1]}#)"

    return NAMED.sub(r"```\1", LINK.sub(replace, text))


def settings() -> str:
    """The site's settings, in the part of YAML that needs no library."""
    lines = ["site_name: cutrace", "docs_dir: site-source", "site_dir: site"]
    lines += ["use_directory_urls: false", "theme: readthedocs", "nav:"]
    for name, value in NAV.items():
        if isinstance(value, str):
            lines.append(f"  - {name}: {value}")
        else:
            lines.append(f"  - {name}:")
            lines += [f"      - {title}: {page}" for title, page in value.items()]
    return "\n".join((*lines, "markdown_extensions: [tables, fenced_code, toc]")) + "\n"


def write_source(folder: Path) -> None:
    """Write all pages and pictures into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = {path.resolve(): name for name, path in pages().items()}
    for name, path in pages().items():
        text = linked(path.read_text("utf-8"), path, names)
        (folder / name).write_text(text, "utf-8")
    for picture in (*(ROOT / "docs").glob("*.png"), *(ROOT / "docs").glob("*.svg")):
        shutil.copy(picture, folder)


def main() -> None:
    """Build the site."""
    write_source(BUILD / "site-source")
    (BUILD / "mkdocs.yml").write_text(settings(), "utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(BUILD / "mkdocs.yml")]
    subprocess.run(command, check=True)
    print(BUILD / "site" / "index.html")


if __name__ == "__main__":
    main()

"""Write a report or a figure to a file, with errors that name the file."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from ...base.claim import scratch_folder, whole_file
from ...base.errors import CutraceError


def write_report(path: Path, text: str) -> None:
    """Write `text` atomically; CutraceError if the disk is full or the file cannot be written."""
    try:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
KINDS = (".svg", ".png", ".pdf")
SHARP = 2
"""Pixels of a PNG per unit of the drawing."""
SECONDS = 60
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>@page {{ size: {0}px {1}px; margin: 0 }}
html, body {{ margin: 0; color-scheme: light; height: calc({1}px - 1px); overflow: hidden }}
svg {{ display: block; width: {0}px; height: {1}px }}
</style>{2}"""


def write_figure(path: Path, svg: str) -> None:
    """Write a drawing in the format of the file's suffix.

    CutraceError for another suffix, and for PNG and PDF if there is no browser.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise CutraceError(f"{path}: expected a name that ends in {', '.join(KINDS)}")
    if kind == ".svg":
        write_report(path, svg)
        return
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    wide, high = (round(float(each)) for each in size.groups())
    with scratch_folder() as folder:
        page, image = Path(folder, "page.html"), Path(folder, f"drawn{kind}")
        page.write_text(PAGE.format(wide, high, svg), encoding="utf-8")
        _draw(page, image, wide, high)
        if not image.is_file():
            raise CutraceError(f"{path}: the browser drew nothing; --svg FILE.svg needs none")
        try:
            with whole_file(path) as part:
                shutil.copyfile(image, part)
        except OSError as error:
            raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error


def _draw(page: Path, image: Path, wide: int, high: int) -> None:
    """Render the page with a browser: print a PDF or take a screenshot."""
    words = [_browser(), "--headless", "--disable-gpu"]
    words.append(f"--user-data-dir={page.parent / 'profile'}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.append("--no-sandbox")  # in a container, where no sandbox is possible
    if image.suffix == ".pdf":
        words += [f"--print-to-pdf={image}", "--no-pdf-header-footer"]
    else:
        words += [f"--screenshot={image}", f"--window-size={wide},{high}", "--hide-scrollbars"]
        words.append(f"--force-device-scale-factor={SHARP}")
    try:
        subprocess.run([*words, page.as_uri()], capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CutraceError(f"{words[0]}: cannot draw with it: {error}") from error


def _browser() -> str:
    for name in (os.environ.get("CUTRACE_BROWSER", ""), *BROWSERS):
        if name and (browser := shutil.which(name)):
            return browser
    raise CutraceError(
        "PNG and PDF are drawn by a browser, and there is none here: install Chromium, name one in"
        " $CUTRACE_BROWSER, or take SVG, which slides and pages show as well"
    )

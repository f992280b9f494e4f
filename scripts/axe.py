"""Hold the report's page and the served one to WCAG 2.2, levels A and AA, by axe-core.

Makes a report of three transposes, as scripts/write/report.py does, and a served page of README's
kernel; looks at every part of them in Chromium, light and dark, wide and narrow, and prints what
axe finds. Exit status 1 if it finds anything. Needs Chromium and npm, which brings axe-core.

    python scripts/axe.py [BROWSER]
"""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from cutrace.commands.options.selection import Reading
from cutrace.commands.serving.live import Live
from cutrace.models.replay.interface.options import ReplayOptions

ROOT = Path(__file__).parents[1]
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
WIDTHS = (400, 1400)
PARTS = ("summary", "source", "flow", "accesses", "occupancy", "variants", "counters")
ASK = """
<script>%s</script>
<script>addEventListener("load", () => setTimeout(() => {
  if (%s) document.getElementById("theme").click();
  axe.run(document, {runOnly: %s}).then(found => {
    const said = document.createElement("pre");
    said.id = "axe";
    said.textContent = JSON.stringify(found.violations);
    document.body.append(said);
  });
}, 200));</script>
"""


def install(folder: Path) -> str:
    """axe's text, from npm."""
    command = ["npm", "install", "--silent", "--prefix", str(folder), "axe-core"]
    subprocess.run(command, check=True)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def pages(folder: Path) -> Iterator[Path]:
    """The report and the served page."""
    scripts = runpy.run_path(str(ROOT / "scripts" / "write" / "report.py"))
    variants = [scripts["record"](variant, folder) for variant in scripts["VARIANTS"]]
    report = folder / "report.html"
    scripts["check"](["report", *variants, "-d", "h200,gtx580,8800gtx", "-o", str(report)])
    yield report
    kernels = runpy.run_path(str(ROOT / "scripts" / "write" / "lanes.py"))["sources"]()
    source, served = folder / "scale.cu", folder / "served.html"
    live = Live(source, Reading(), ReplayOptions(device=("h100",)))
    for name in ("scale.cu", "fixed.cu"):
        source.write_text(kernels[name], "utf-8")
        live.look()
    served.write_text(live.page, "utf-8")
    live.end()
    yield served


def violations(browser: str, page: Path, axe: str, part: str, width: int, dark: bool) -> list[str]:
    """What axe finds in a part of a page: the rule, how grave, and the first element."""
    asked = ASK % (axe.replace("</script", "<\\/script"), json.dumps(dark), json.dumps(LEVELS))
    copy = page.with_name("asked.html")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    copy.write_text(text.replace("</body>", f"{asked}</body>"), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    options += [f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=20000"]
    words = [browser, *options, "--dump-dom", f"{copy.resolve().as_uri()}#{part}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    said = re.search(r'<pre id="axe">(.*?)</pre>', done.stdout, re.DOTALL)
    if said is None:
        sys.exit(f"{page.name}: axe said nothing; {done.stderr[-300:]}")
    return [
        f"{rule['id']} ({rule['impact']}), {len(rule['nodes'])} elements: {rule['help']}\n"
        f"    {rule['nodes'][0]['html'][:160]}\n    {rule['nodes'][0]['failureSummary'][:300]}"
        for rule in json.loads(unescape(said[1]))
    ]


def main() -> None:
    """Look at every part of both pages, and say what was found."""
    browser = sys.argv[1] if len(sys.argv) > 1 else "chromium"
    count = 0
    with TemporaryDirectory() as place, chdir(place):
        axe = install(Path(place))
        for page in pages(Path()):
            for part in PARTS:
                for width, dark in ((WIDTHS[0], False), (WIDTHS[1], False), (WIDTHS[1], True)):
                    found = violations(browser, page, axe, part, width, dark)
                    count += len(found)
                    where = f"{page.name}#{part}, {width} px, {'dark' if dark else 'light'}"
                    print(where, *(found or ["nothing found"]), sep="\n  ", flush=True)
    sys.exit(count > 0)


if __name__ == "__main__":
    main()

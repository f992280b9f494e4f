"""Draw docs/report*.png and docs/serve.png: a report of two transposes, and README's kernel served.

    python scripts/write/report.py [BROWSER]

BROWSER is Chromium or what takes its options, `chromium` if nothing is said.
"""

import runpy
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from cutrace.commands._main import run
from cutrace.commands.options.selection import Reading
from cutrace.commands.serving.live import Live, Server
from cutrace.models.replay.interface.options import ReplayOptions

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery" / "transpose"
VARIANTS = ("naive", "padded")
LAUNCH = "{}<<<(8, 8), (32, 32)>>>(out:f32[256,256], in:f32[256,256]=arange, 256, 256)"
KERNELS = {"naive": "transposeNaive", "padded": "transposePadded<32>"}
PICTURES = {
    "report.png": "#summary;device=h200",
    "report-source.png": "#source;device=h200",
    "report-flow.png": "#flow;device=h200",
    "report-accesses.png": "#accesses;device=h200",
    "report-variants.png": "#variants;device=h200",
}
SIZE = "1200,800"


def record(variant: str, folder: Path) -> str:
    """Record a kernel of the gallery; return its name and path as `cutrace report` takes them."""
    trace = folder / f"{variant}.cutrace"
    source = folder / f"{variant}.cu"
    lines = (GALLERY / f"transpose_{variant}.cu").read_text("utf-8").splitlines()
    source.write_text("\n".join(line for line in lines if not line.startswith("//")), "utf-8")
    launch = LAUNCH.format(KERNELS[variant])
    check(["record", str(source), "--launch", launch, "-o", str(trace)])
    return f"{variant}={trace}"


def check(arguments: list[str]) -> None:
    """Run one command of cutrace; stop if it fails."""
    if status := run(arguments):
        sys.exit(status)


def main() -> None:
    """Make the report, and a picture of each of PICTURES."""
    browser = sys.argv[1] if len(sys.argv) > 1 else "chromium"
    with TemporaryDirectory() as place, chdir(place):  # paths in the pictures are short
        folder = Path()
        page = folder / "report.html"
        variants = [record(variant, folder) for variant in VARIANTS]
        check(["report", *variants, "-d", "h200,gtx580", "-o", str(page)])
        for name, part in PICTURES.items():
            draw(browser, folder, name, page.resolve().as_uri() + part)
        serve(browser, folder)


def draw(browser: str, folder: Path, name: str, address: str) -> None:
    """Take a picture of a page as it is after a second."""
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}"]
    options += ["--timeout=1500", f"--user-data-dir={folder.resolve() / 'profile'}"]
    shot = f"--screenshot={ROOT / 'docs' / name}"
    subprocess.run([browser, *options, shot, address], check=True)


def serve(browser: str, folder: Path) -> None:
    """Serve README's kernel, change it, and take a picture of what changed."""
    kernels = runpy.run_path(str(ROOT / "scripts" / "write" / "lanes.py"))["sources"]()
    source = folder / "scale.cu"
    source.write_text(kernels["scale.cu"], "utf-8")
    live = Live(source, Reading(), ReplayOptions(device=("h100",)))
    with Server(live, 0) as server:
        live.look()
        source.write_text(kernels["fixed.cu"], "utf-8")
        live.look()
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        draw(browser, folder, "serve.png", server.address)
        live.end()
        server.shutdown()


if __name__ == "__main__":
    main()

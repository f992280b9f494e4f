"""Draw docs/report.png and docs/report-source.png: a report of two transposes, in a browser.

    python scripts/write/report.py [BROWSER]

BROWSER is Chromium or what takes its options, `chromium` if nothing is said.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cutrace.cli import run

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery" / "transpose"
VARIANTS = ("naive", "padded")
LAUNCH = "{}<<<(8, 8), (32, 32)>>>(out:f32[256,256], in:f32[256,256]=arange, 256, 256)"
KERNELS = {"naive": "transposeNaive", "padded": "transposePadded<32>"}
PICTURES = {"report.png": "", "report-source.png": "#source"}
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
    with TemporaryDirectory() as place:
        folder = Path(place)
        page = folder / "report.html"
        variants = [record(variant, folder) for variant in VARIANTS]
        check(["report", *variants, "-d", "h200,gtx580", "-o", str(page)])
        for name, part in PICTURES.items():
            options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}"]
            options += ["--virtual-time-budget=3000"]
            shot = f"--screenshot={ROOT / 'docs' / name}"
            where = f"--user-data-dir={folder / 'profile'}"
            subprocess.run([browser, *options, where, shot, page.as_uri() + part], check=True)


if __name__ == "__main__":
    main()

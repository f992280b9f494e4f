"""Let Accel-Sim and CUTracer count the traces of tests/cases/peers_case.py; keep what they print.

`python scripts/capture/peers.py accel-sim SIMULATOR CONFIG...` runs an `accel-sim.out` that is
built already, with its own files of options. `python scripts/capture/peers.py cutracer COMMAND`
asks the command of the PyPI package cutracer. What they print goes to
tests/validate/peers/PEER.json, with the command beside it; nothing is computed here.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/validate/peers"
sys.path.insert(0, str(ROOT / "tests"))

from cases.peers_case import ACCESSES, STATISTICS, WHOLE, write_case  # noqa: E402

Counts = dict[str, dict[str, int]]


def ask(*command: str | Path, at: Path) -> str:
    """What a command prints."""
    done = subprocess.run([*map(str, command)], cwd=at, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def accel_sim(simulator: Path, configs: list[Path]) -> tuple[str, Counts]:
    """Simulate each case, and read the statistics printed at its end."""
    options = [word for path in configs for word in ("-config", path.resolve())]
    found, build = {}, ""
    for case in WHOLE:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_case(case, folder)
            (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
            trace = ("-trace", folder / "kernelslist.g")
            text = ask(simulator.resolve(), *trace, *options, at=folder)
        build = ", ".join(re.findall(r"\[build (\S*commit-\w+)", text))
        found[case] = {name: _last(text, name) for name in STATISTICS}
        print(case, found[case], flush=True)
    return build, found


def _last(text: str, name: str) -> int:
    """The last number printed for a statistic; none is printed for caches nobody asked."""
    numbers = re.findall(rf"^\s*{re.escape(name)}\s*=\s*(\d+)", text, re.M)
    return int(numbers[-1]) if numbers else 0


def cutracer(command: Path) -> tuple[str, Counts]:
    """Ask for the records of each instruction and of each warp."""
    found: Counts = {}
    for case in ACCESSES:
        with tempfile.TemporaryDirectory() as folder:
            file = write_case(case, Path(folder))
            ask(command, "validate", file, at=Path(folder))
            found[case] = {}
            for field in ("sass", "warp"):
                query = ("query", file, "--group-by", field, "--count", "--format", "csv")
                for line in ask(command, *query, "--no-header", at=Path(folder)).splitlines():
                    key, _, count = line.rpartition(",")
                    if name := key.strip('" '):  # the first record is of the kernel: of no warp
                        found[case][f"{field} {name}"] = int(count)
    return ask(command, "--version", at=FOLDER).strip(), found


def main(peer: str, program: str, *configs: str) -> None:
    """Write what one peer counts."""
    if peer == "accel-sim":
        build, found = accel_sim(Path(program), [*map(Path, configs)])
        names = [f"{Path(c).parent.name}/{Path(c).name}" for c in configs]
        line = " ".join(["accel-sim.out -trace kernelslist.g", *(f"-config {n}" for n in names)])
    else:
        build, found = cutracer(Path(program))
        line = "cutracer query FILE --group-by sass --count; the same of warp"
    told = {"version": build, "command": line, "counts": found}
    (FOLDER / f"{peer}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

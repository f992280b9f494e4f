"""One case of the bench in a process of its own: CPU seconds of recording and of replaying it.

scripts/measure/bench_compare.py runs it for each of two commits.
"""

import sys
import tempfile
import time
from pathlib import Path

from bench_cases import large_cases

from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.replay import replay
from cutrace.traces.reader import read_trace

DEVICE = "h200"


def main() -> None:
    """Print the seconds of both, each the less of two."""
    (case,) = [case for case in large_cases() if case.name == sys.argv[1]]
    device = load_device(DEVICE)
    recorded, replayed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(2):
            trace = Path(folder) / f"{turn}.cutrace"
            begin = time.process_time()
            case.record(trace)
            between = time.process_time()
            for launch in read_trace(trace).launches:
                replay(launch, [device])
            recorded.append(between - begin)
            replayed.append(time.process_time() - between)
    print(min(recorded), min(replayed))


if __name__ == "__main__":
    main()

"""Rounds of the command line, of sessions that fork and of remote traces, for fuzz/storage.py.

A command line runs as in its own process: `main` in a forked child, with its handlers of signals,
and what it prints in files. Its answers are compared with those where nothing was kept before.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cutrace.commands import _application  # noqa: F401 (children have it then)
from cutrace.commands._main import main
from cutrace.tracer.session.session import Session
from cutrace.traces import remote

SOURCE = """// cutrace: k{0}<<<1, 32>>>(x:f32[512])
// cutrace: k{0}<<<1, 32>>>(x)
__global__ void k{0}(float *x) {{ for (int i = 0; i < {0}; i++) x[{0} * threadIdx.x] += i; }}
"""
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k{0}(.param .u64 x) {{
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, {1}; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;
ret; }}
"""
BUDGET = """
[[budget]]
kernel = "k11"
global_load_transactions = 1000000
"""
SUITE = """
[[variant]]
name = "one"
source = "k11.cu"
[[variant]]
name = "two"
source = "k12.cu"
"""
RECORDED, IN_SESSION = (11, 12, 13, 14), (21, 22, 23, 24)
"""Numbers of traces of command lines and of sessions; each number is in the kernel's name."""
DEVICE = ("-d", "gtx580")
HOW = ("whole", "whole", "stalled", "early", "endless")
"""How a server answers; `endless` sends more than it says, or says no size."""


def write_sources(here: Path) -> list[Path]:
    """Write what command lines read; return those files that nobody changes."""
    names = {f"k{number}.cu": SOURCE.format(number) for number in RECORDED}
    names |= {"budget.toml": BUDGET, "suite.toml": SUITE}
    for name, text in {**names, "changing.cu": SOURCE.format(RECORDED[0])}.items():
        (here / name).write_text(text)
    return [here / name for name in names]


RESULTS = {"page.html", "s.parquet", "s.parquet.parts", "changing.cu"}


def change_source(here: Path, number: int) -> None:
    """Save another text as the source that others read."""
    new = here.parent / f"changing.{os.getpid()}"
    new.write_text(SOURCE.format(number))
    os.replace(new, here / "changing.cu")


def look_at(here: Path) -> str:
    """What is wrong with the page and the table that command lines wrote, if they are there."""
    page, table = here / "page.html", here / "s.parquet"
    if page.is_file() and not page.read_text().rstrip().endswith("</html>"):
        return "raised: half a page"
    if table.is_file():
        found = pl.read_parquet(table)
        if sorted({*found["variant"]}) != ["one", "two"]:
            return f"raised: not a whole table: {found['variant']}"
    return "done"


# The command line


def command(*words: str) -> tuple[int, str, str]:
    """Run a command line in this process, which it ends; return status, stdout and stderr."""
    streams = [tempfile.TemporaryFile("w+", dir="/dev/shm") for _ in range(2)]  # noqa: SIM115
    for number, stream in enumerate(streams, 1):
        os.dup2(stream.fileno(), number)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))
    sys.argv = ["cutrace", *words]
    status = 0
    try:
        main()
    except SystemExit as end:
        status = int(end.code or 0)
    texts = []
    for own, stream in zip((sys.stdout, sys.stderr), streams, strict=True):
        own.flush()
        stream.seek(0)
        texts.append(stream.read())
    return status, texts[0], texts[1]


def words_of(verb: str, target: str, other: str, number: int) -> tuple[str, ...]:
    """The words of a verb: the trace is `target`, the source of this number."""
    asked = {
        "record": ("record", f"k{number}.cu", "-o", target),
        "record changing": ("record", "changing.cu", "-o", target),
        "analyze": ("analyze", target, *DEVICE, "--format", "json"),
        "analyze source": ("analyze", "changing.cu", *DEVICE, "--format", "json"),
        "info": ("info", target, "--format", "json"),
        "check": ("check", target, "--budget", "budget.toml", "--allow-missing", *DEVICE),
        "compare": ("compare", target, other, *DEVICE, "--format", "csv"),
        "report": ("report", target, *DEVICE, "-o", "page.html"),
        "sweep": ("sweep", "suite.toml", *DEVICE, "-o", "s.parquet", "--processes", "1"),
        "export": ("export", target, "--to", "zip", "-o", "c.cutrace.zip"),
    }
    return asked[verb]


VERBS = (
    *("record", "record", "record changing", "analyze", "analyze", "analyze source"),
    *("info", "check", "compare", "report", "sweep", "export"),
)


def record(target: Path, number: int) -> str:
    """Record a source."""
    done = run_verb("record", str(target), "", number)
    return done if isinstance(done, str) else "done"


def run_any(dice: random.Random, target: str, other: str) -> str | tuple[str, str]:
    """Run some verb."""
    return run_verb(dice.choice(VERBS), target, other, dice.choice(RECORDED))


def run_verb(verb: str, target: str, other: str, number: int) -> str | tuple[str, str]:
    """Run a verb; return what was wrong, or the verb and what it printed to compare it."""
    status, out, err = command(*words_of(verb, target, other, number))
    if "Traceback" in err or status not in (0, 1, 2):
        return f"raised: {verb}: status {status}: {err}"
    if status:
        is_clear = err.startswith("cutrace: ") and "cutrace: [Errno" not in err
        return f"{'told' if is_clear else 'raised'}: {verb}: status {status}: {err}"
    return verb, out


def known(text: str) -> str:
    """The number of the trace that was counted: of its kernels' name."""
    numbers = {*re.findall(r"\bk(\d+)\b", text)}
    return numbers.pop() if len(numbers) == 1 else f"not one but {sorted(numbers)}"


def counted(verb: str, out: str) -> Iterator[tuple[str, str]]:
    """What an answer says of each trace: its number, and its counts."""
    if verb.startswith("analyze"):
        for launch in json.loads(out)["launches"]:
            yield known(launch["kernel"]), json.dumps(launch["devices"])
    elif verb == "info":
        for row in json.loads(out)["rows"]:
            yield known(row["kernel"]), json.dumps({**row, "launch": 0})


# Sessions


def _work(number: int) -> int:
    return number + 1


def _wait(queue: Any) -> None:
    """Be a worker as of a loader of data: an item after the other until there is none."""
    while queue.get() is not None:
        np.zeros(100).sum()


def session_of_any(dice: random.Random, target: Path) -> str:
    """Record some launches, and fork in some way."""
    return session(target, dice.choice(IN_SESSION), dice.choice(FORKS))


def session(target: Path, number: int, how: str = "") -> str:
    """Record two launches, among which children are forked that end while this one goes on."""
    with Session(target) as gpu:
        kernel = gpu.load_ptx(PTX.format(number, 4 * (number % 10))).get_function(f"k{number}")
        x = gpu.to_device(np.zeros(256, np.float32))
        kernel[1, 32](x)
        queues = _fork(how)
        kernel[1, 32](x)
        for queue, worker in queues:
            queue.put(None)
            worker.join()
    return "done"


def _fork(how: str) -> list[tuple[Any, Any]]:
    forked = get_context("fork")
    if how == "pool":
        with forked.Pool(2) as pool:
            assert pool.map(_work, range(4)) == [1, 2, 3, 4]
    elif how == "workers":
        made = []
        for _ in range(2):
            queue = forked.SimpleQueue()
            worker = forked.Process(target=_wait, args=(queue,))
            worker.start()
            queue.put(1)
            made.append((queue, worker))
        return made
    elif how == "killed":
        worker = forked.Process(target=signal.pause)
        worker.start()
        worker.kill()
        worker.join()
    elif how == "leaving" and not os.fork():
        sys.exit(0)
    elif how == "system":
        assert os.system("exit 3") >> 8 == 3
    return []


FORKS = ("", "pool", "workers", "killed", "leaving", "system")


# Remote traces


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; the first part of a path says how."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def translate_path(self, path: str) -> str:
        """Return the file of a path without its first part."""
        return super().translate_path("/" + path.split("/", 2)[-1])

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file as asked."""
        how = self.path.split("/")[1]
        if how == "stalled":
            outputfile.write(source.read(10))
            time.sleep(3)
        elif how == "early":
            outputfile.write(source.read(10))
        else:
            super().copyfile(source, outputfile)
        if how == "endless":
            with suppress(OSError):
                while True:
                    outputfile.write(b"<a href='x'>" * 1000)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Serve a folder from a process of its own; yield the address."""
    read, write = os.pipe()
    if not (child := os.fork()):
        signal.alarm(3600)
        http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        os.write(write, f"{http.server_port}".encode())
        os.close(write)
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        http.serve_forever()
    os.close(write)
    with open(read) as file:
        port = file.read()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def ask_remote(dice: random.Random, address: str, ask: Callable[[Path], Any]) -> Any:
    """Replay a trace from a server that answers in some way."""
    remote.SILENCE = 1.0
    remote.RESPONSE_BYTES = 1 << 20
    how = dice.choice(HOW)
    answer = ask(remote.fetch(address.format(how)))
    return f"raised: accepted though {how}" if how in ("stalled", "early") else answer


# cutrace serve


def serve(here: Path, dice: random.Random) -> str:
    """Follow a source that changes; the page shows what is in it in the end."""
    words = [sys.executable, "-m", "cutrace", "serve", "changing.cu", "--port", "0", *DEVICE]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert child.stdout is not None
        address = ""
        for line in child.stdout:
            if match := re.search(r"http://\S+", line):
                address = match[0]
                break
        number = 0
        for number in dice.sample(RECORDED, 2):
            time.sleep(dice.random())
            change_source(here, number)
        end = time.monotonic() + 15
        while time.monotonic() < end:
            with urllib.request.urlopen(address) as page:
                if f"k{number}" in page.read().decode():
                    return "done"
            time.sleep(0.2)
        return f"raised: the page does not show k{number}"
    finally:
        child.send_signal(dice.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        child.communicate()


# What is right

_ANSWERS: dict[tuple[str, str], str] = {}
"""By verb and number, what it says of each launch of that trace where nothing was kept before."""


def answer_alone(
    here: Path,
    empty: Path,
    writers: Mapping[int, Callable[[Path, int], str]],
    in_child: Callable[[Callable[[], Any]], Any],
) -> None:
    """Find what verbs answer of each trace that is written here."""
    target = here / "alone.cutrace"
    for number, write in writers.items():
        for verb in ("analyze", "info"):
            if (verb, f"{number}") not in _ANSWERS:

                def answer(verb: str = verb, number: int = number, write: Any = write) -> Any:
                    os.environ["XDG_CACHE_HOME"] = str(empty / f"{verb}{number}")
                    assert write(target, number) == "done"
                    return run_verb(verb, str(target), "", number)

                _, out = in_child(answer)
                parts = {counts for _, counts in counted(verb, out)}
                (_ANSWERS[verb, f"{number}"],) = parts
                shutil.rmtree(target)


def judge(verb: str, out: str) -> str:
    """What is wrong with the answer of a command line, if anything."""
    kind = verb.split()[0]
    for number, counts in counted(verb, out) if kind in ("analyze", "info") else ():
        counts = counts.replace("changing.cu", f"k{number}.cu")
        if counts != _ANSWERS.get((kind, number), counts):
            return f"{verb} answers {counts} of a trace of kind {number}"
    return ""

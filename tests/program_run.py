"""Whole CUDA programs for tests: written to a folder, built, recorded as a user would."""

import atexit
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from command_server import server

from cutrace.traces.reader import Trace, read_trace

HEAD = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define CHECK(call) do { cudaError_t e = (call); if (e) { printf("line %d: %s\\n", __LINE__, \\
    cudaGetErrorName(e)); exit(9); } } while (0)
"""
FILES = r"""
#define DO(call) do { int did = (call); if (did) { printf("line %d: %d\n", __LINE__, did); \
    exit(9); } } while (0)
__global__ void touch(double *x) { x[threadIdx.x] += 0; }
template <class T> T *read(const char *name, size_t n) {
    T *made; CHECK(cudaMallocManaged(&made, n * sizeof(T)));
    FILE *f = fopen(name, "rb"); if (!f || fread(made, sizeof(T), n, f) != n) exit(8);
    fclose(f); return made;
}
static void write(const char *name, const void *data, size_t bytes) {
    FILE *f = fopen(name, "wb"); fwrite(data, 1, bytes, f); fclose(f);
}
"""
"""For programs that read their arrays from files, and write others."""

SECONDS = 300
"""After which a command is taken to hang."""


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit status, what it printed, the trace's path."""

    status: int
    out: str
    err: str
    path: Path

    @property
    def trace(self) -> Trace:
        """What it recorded."""
        return read_trace(self.path)


def cutrace(folder: Path, *words: str, text: str = "") -> Done:
    """Run a command line of cutrace in a folder."""
    done = server().run(words, folder, text, SECONDS)
    return Done(done.returncode, done.stdout, done.stderr, folder / "app.cutrace")


def record(
    folder: Path, source: str, *arguments: str, options: Sequence[str] = (), text: str = ""
) -> Done:
    """Write a program of CUDA C++ to `app.cu`, and record it with arguments."""
    (folder / "app.cu").write_text(HEAD + source)
    return cutrace(folder, "record", "app.cu", *options, "--", *arguments, text=text)


@cache
def built(source: str, *words: str) -> Path:
    """A program of `app.cu` that `cutrace nvcc` builds once for all tests of a process."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    app = Path(folder.name, "app")
    app.with_suffix(".cu").write_text(source)
    done = cutrace(app.parent, "nvcc", "app.cu", "-o", "app", *words)
    assert done.status == 0, done.err
    return app


def record_built(
    folder: Path,
    source: str,
    *arguments: str,
    words: Sequence[str] = (),
    options: Sequence[str] = (),
    text: str = "",
) -> Done:
    """Record a program with arguments in a folder, built once with these words of nvcc."""
    app = str(built(source, *words))
    return cutrace(
        folder, "record", *options, "-o", "app.cutrace", "--", app, *arguments, text=text
    )


def together(head: str, parts: Mapping[str, str]) -> str:
    """One program of several, whose first argument names the one that runs, each in a namespace.

    `int main()` is the last function of each.
    """
    includes, namespaces, calls = "", "", ""
    for name, source in parts.items():
        includes += "".join(re.findall(r"^ *#include.*\n", source, re.MULTILINE))
        body = re.sub(r"^ *#include.*\n", "\n", source, flags=re.MULTILINE)
        body = body.replace("int main()", "static int run()").rstrip().removesuffix("}")
        namespaces += f"namespace {name} {{\n{body}return 0; }}\n}}\n"
        calls += f'if (!strcmp(words[1], "{name}")) return {name}::run();\n'
    return (
        f"{HEAD}{includes}{head}{namespaces}int main(int, char **words) {{\n{calls}return 99; }}\n"
    )

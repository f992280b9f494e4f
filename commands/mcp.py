"""`cutrace mcp`: tools for agents, over the Model Context Protocol on stdin and stdout.

Each call runs a verb with `--format json` as a process of its own, with a limit of time and of
memory, in the server's folder. Its temporary files and its cache are in FOLDER/.cutrace. Sources
and the files that they name must be in the folder; scripts and programs are refused, since they
could write anywhere.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.config import bytes_of
from ..base.dataclass import dataclass
from ..base.errors import ERROR_FORMAT, CutraceError
from .options.verb import argument, value, verb

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.tools import Tool

SUFFIXES = (".cu", ".ptx", ".cutrace", ".zip")
"""Suffixes of sources and traces."""
MOST_BYTES = 1 << 20
"""The largest source."""
MOST_OUTPUT = 1 << 23
"""The largest answer, in bytes."""
LIMITED = (
    "import resource, sys\n"
    "limit = int(sys.argv.pop(1))\n"
    "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
    "from cutrace.commands._main import main\n"
    "main()"
)
"""The program of a call: a verb with a limit of its address space."""
_DEVICES = re.compile(r"[\w-]+(,[\w-]+)*")
_FILES = re.compile(r"=\s*\"?([^\",()]+\.npy)")
INSTRUCTIONS = """cutrace runs CUDA kernels without a GPU and counts what they do to memory.
After each edit of a kernel call `judge` with the reference and the candidate: the verdict is
faster, slower, same or broken, with the reason. Paths are relative to the server's folder. A source
says its launches in comments, as in
`// cutrace: KERNEL<<<GRID, BLOCK>>>(out:f32[1024], in:f32[1024]=random:1, 1024)`,
or the argument `launch` does."""


@verb("Compare", "cutrace mcp kernels", "cutrace mcp --seconds 20 --memory 4G")
def mcp(
    folder: Annotated[Path, argument("The folder that tools read and write")] = Path(),
    seconds: Annotated[float, value("End a call that takes longer.", "S", min=1)] = 60.0,
    memory: Annotated[str, value("The address space of a call: 4G.", "BYTES")] = "16G",
) -> None:
    """Serve judge, analyze, why, counters and devices to agents (MCP, on stdin and stdout)."""
    if not folder.is_dir():
        raise CutraceError(f"{folder}: there is no such folder")
    caller = Caller(folder.resolve(), seconds, bytes_of(memory, "memory", 1 << 30))
    make_server(caller).run()


def make_server(caller: "Caller") -> "MCPServer[Any]":
    """Return the server; its tools run verbs with `caller`."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.server.mcpserver.tools import Tool
    except ImportError:
        raise CutraceError('mcp is not installed: pip install "cutrace[mcp]"') from None
    from anyio.to_thread import run_sync

    from ..base.version import __version__

    async def call(make: Any) -> dict[str, Any]:
        try:
            return await run_sync(lambda: caller.run(make()))
        except CutraceError as problem:
            raise ToolError(str(problem)) from None

    async def judge(
        before: str,
        after: str,
        launch: Sequence[str] = (),
        device: str = "h100",
        expect: dict[str, str] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        seconds: float = 15,
    ) -> dict[str, Any]:
        """Judge a candidate kernel against a reference: is it faster, slower, the same or broken?

        `verdict` is the answer, `reason` one sentence, `ratio` the speed-up with `ratio_interval`,
        `findings` what to change next, with lines. `before` and `after` are .cu, .ptx or .cutrace
        files. `expect` maps arrays to .npy files with the right values; without it the arrays of
        the reference are right. Each of the two may take `seconds` of processor time.
        """
        options = [f"--{n}={v}" for n, v in (("rtol", rtol), ("atol", atol)) if v is not None]
        options.append(f"--seconds={min(seconds, 0.4 * caller.seconds):g}")

        def words() -> list[str]:
            expected = (f"--expect={n}={caller.inside(f)}" for n, f in (expect or {}).items())
            return ["judge", *caller.sources((before, after), launch, device), *options, *expected]

        return await call(words)

    async def analyze(
        source: str,
        launch: Sequence[str] = (),
        device: str = "h100",
        by: str = "launch",
        counters: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Count what a kernel does: estimated time, bounds, stalls, and all counters.

        `by` is launch, line, array, instruction, reuse or set; `counters` selects some by name.
        """
        options = [f"--by={by}", *([f"--counters={','.join(counters)}"] if counters else [])]
        return await call(lambda: ["analyze", *caller.sources((source,), launch, device), *options])

    async def why(
        source: str, line: str = "", launch: Sequence[str] = (), device: str = "h100"
    ) -> dict[str, Any]:
        """Say why an access costs what it does: the worst of a line (`FILE:LINE`), or of all."""
        if line.startswith("-"):
            raise ToolError(f"{line[:60]!r} is no line")
        which = [line] if line else []
        return await call(lambda: ["why", *caller.sources((source,), launch, device, which)])

    async def counters(name: str = "") -> dict[str, Any]:
        """List counters with unit, definition and source; `name` is one, or a part of names."""
        return await call(lambda: ["counters", *_word(name)])

    async def devices(name: str = "") -> dict[str, Any]:
        """List devices with capability, SMs, clock and memory; `name` is one, or a pattern."""
        return await call(lambda: ["devices", *_word(name)])

    tools = [_strict(Tool.from_function(f)) for f in (judge, analyze, why, counters, devices)]
    return MCPServer("cutrace", version=__version__, instructions=INSTRUCTIONS, tools=tools)


def _strict(tool: "Tool") -> "Tool":
    """Return a tool that refuses arguments that it does not have, as a misspelt `device`."""
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


def _word(name: str) -> list[str]:
    """Return a name as an argument; refuse files and options."""
    if name and not re.fullmatch(r"[\w.*?-]+", name):
        raise CutraceError(f"{name[:60]!r} is no name")
    return ["--", name] if name else []


@dataclass(frozen=True, slots=True)
class Caller:
    """Runs verbs in a folder, for so many seconds and with so many bytes of address space each."""

    folder: Path
    seconds: float
    memory: int

    def inside(self, name: str) -> str:
        """Return a file's path relative to the folder; raise `CutraceError` if it lies outside."""
        try:
            path = (self.folder / name).resolve()
        except (OSError, ValueError, RuntimeError) as problem:
            raise CutraceError(f"{name[:60]!r}: {problem}") from None
        if not path.is_relative_to(self.folder):
            raise CutraceError(f"{name}: it lies outside of the server's folder {self.folder}")
        if not path.exists():
            raise CutraceError(f"{name}: there is no such file in {self.folder}")
        return os.path.join(os.curdir, path.relative_to(self.folder))

    def sources(
        self, names: Sequence[str], launch: Sequence[str], device: str, more: Sequence[str] = ()
    ) -> list[str]:
        """Return the arguments of a verb with sources; raise `CutraceError` for invalid ones."""
        if not _DEVICES.fullmatch(device):
            raise CutraceError(f"{device[:60]!r} is no device; the tool devices lists them")
        paths = [self._source(name) for name in names]
        for name in _FILES.findall("\n".join(launch)):
            self.inside(name)
        options = [f"--launch={line}" for line in launch]
        return [*paths, *more, f"--device={device}", *options]

    def _source(self, name: str) -> str:
        path = Path(self.inside(name))
        file = self.folder / path
        if path.suffix not in SUFFIXES:
            raise CutraceError(f"{name}: expected a .cu or .ptx source, or a trace")
        if file.is_file() and path.suffix in (".cu", ".ptx"):
            if (size := file.stat().st_size) > MOST_BYTES:
                raise CutraceError(
                    f"{name} has {size:,} bytes; a source has {MOST_BYTES:,} at most"
                )
            self._check_files(file, name)
        return os.path.join(os.curdir, path)

    def _check_files(self, file: Path, name: str) -> None:
        """Raise `CutraceError` for a source that includes or loads a file outside of the folder."""
        from ..tracer.front.standin_headers import local_files

        text = file.read_text(encoding="utf-8", errors="replace")
        files = [*local_files(str(file), text, (str(file.parent),))]
        files += [str(file.parent / array) for array in _FILES.findall(text)]
        for each in files:
            path = Path(each).resolve()
            if not path.is_relative_to(self.folder):
                raise CutraceError(f"{name}: {each} lies outside of the server's folder")
            if path.is_file() and path.suffix != ".npy" and path.stat().st_size > MOST_BYTES:
                raise CutraceError(f"{each}: a header has {MOST_BYTES:,} bytes at most")

    def run(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Run a verb and return its JSON; raise `CutraceError` with its message if it fails."""
        verb, *rest = arguments
        own = self.folder / ".cutrace"
        if own.is_symlink():
            raise CutraceError(f"{own} is a symbolic link; it must be a folder of this server")
        (own / "tmp").mkdir(parents=True, exist_ok=True)
        if not (own / ".gitignore").exists():
            (own / ".gitignore").write_text("*\n")
        places = {"TMPDIR": str(own / "tmp"), "XDG_CACHE_HOME": str(own / "cache")}
        words = [verb, "--format=json", "--quiet", *rest]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", LIMITED, str(self.memory), *words],
            cwd=self.folder,
            env={**os.environ, **places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            shown, told = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise CutraceError(f"{verb} took longer than {self.seconds:g} s, the limit") from None
        return _read_answer(verb, shown, told, process.returncode)


def _read_answer(verb: str, shown: bytes, told: bytes, status: int) -> dict[str, Any]:
    if len(shown) > MOST_OUTPUT:
        raise CutraceError(f"{verb}: an answer of {len(shown):,} bytes; ask for some counters only")
    try:
        document: dict[str, Any] = json.loads(shown)
    except ValueError:
        last = told.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        reason = last[0].removeprefix("cutrace: ") or "it may have needed more memory"
        raise CutraceError(f"{verb} ended with status {status}: {reason}") from None
    if document.get("format") == ERROR_FORMAT:
        raise CutraceError(str(document["error"]["message"]))
    return document

"""Record a program: start it with our library, serve its device calls, write its launches.

`Child` owns the process and its connections. `record_program` starts it in an environment that puts
our folders first, answers its messages until it ends, and reports how it ended.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import cache
from pathlib import Path

from ...base.cache import folder_of, made_folder
from ...base.claim import Claim, claim_scratch
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault, nearest
from ...base.interrupt import interrupt
from ..front.toolkit import NOT_STARTED, find_host_compiler, find_toolkit, why_nothing_came
from .code import Code
from .launches import Choice, EnoughError, Launches, Tally
from .library import RUN, build_library, find_installed, named_in, wheel_of
from .server import Connections, Listener, Server
from .session import BASE, CONSTANTS, TEXELS, Device, ProgramSession, SharedMemory
from .storage import Storage
from .texels import Texels
from .wire import Answer, OtherVersionError, checksum, fact_names

STARTUP = Path(__file__).with_name("startup")
PYTHON_CACHES = {
    "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba",
    "TILELANG_CACHE_DIR": "tilelang",
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "TRITON_CACHE_DIR": "triton",
    "WARP_CACHE_PATH": "warp",
}
"""Kernel caches of Python packages: kept apart from the machine code for a real device."""

LIBRARIES = ("compute", "run")
"""What NVIDIA's libraries do: their calls are computed on the host, or they run themselves."""

CLOCKS = ("host", "estimate")
"""Whose time CUDA events have: this machine's, or the sum of the launches' estimates."""

GRACE_SECONDS = 5.0
"""Seconds that a program has to exit after it was asked to."""


class Child:
    """A program that runs with our runtime library in front of CUDA's.

    `path` is the executed file if it is not the command's first word, which stays argv[0]. `output`
    is the file for its stdout, if not our own. `clock` is one of CLOCKS.
    """

    def __init__(
        self,
        command: Sequence[str],
        path: Path | None,
        library: Path,
        memory: int,
        output: int | None = None,
        clock: str = CLOCKS[0],
    ) -> None:
        self._listener = Listener()
        self._connections = Connections(self._listener.socket, memory)
        try:
            program = _file_of(command, path)
            environment = _environment(_folders(library, program), self._listener.name)
            if library.name == RUN:
                environment["CUTRACE_LIBRARIES"] = RUN  # startup/cupy_host.py asks
                places = environment["LD_LIBRARY_PATH"], *map(str, _installed(program))
                environment["LD_LIBRARY_PATH"] = ":".join(places)
            environment["CUTRACE_CLOCK"] = clock
            self._process = _start(command, path, environment, output)
        except CutraceError:
            self._listener.close()
            raise
        self._ended = os.pidfd_open(self._process.pid)

    def lines(self) -> Iterator[socket.socket]:
        """Yield the connections that have data to read, until the program has ended."""
        while (line := self._connections.wait(self._ended)) is not None:
            yield line

    def drop(self, line: socket.socket) -> None:
        """Drop the connection of a process that has exited."""
        self._connections.drop(line)

    def wait(self) -> int:
        """Wait for its end; return the exit status, or minus the signal number."""
        return self._process.wait()

    def stop(self) -> None:
        """Terminate it and what it started, a build for instance; it by SIGKILL if necessary."""
        if self._process.poll() is None:
            descendants = [*_descendants(self._process.pid)]
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
            self._process.kill()
            for descendant in descendants:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descendant, signal.SIGTERM)
                os.close(descendant)
        self._process.wait()

    def close(self) -> None:
        """Terminate it if it is running, and close the connection."""
        self._connections.close()
        self._listener.close()
        self.stop()
        os.close(self._ended)


def _descendants(process: int) -> Iterator[int]:
    """Yield a file descriptor of each process that a process and its children started."""
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for child in map(int, file.read_text().split()):
                yield os.pidfd_open(child)
                yield from _descendants(child)


def _folders(library: Path, program: Path) -> list[Path]:
    """Return the library folders that the program must search before all others."""
    return [library, library / "libraries"] if named_in(program) else [library]


def _installed(program: Path) -> list[Path]:
    """Return the folders of this Python's packages with the libraries that the program names."""
    folders = map(find_installed, named_in(program))
    return list(dict.fromkeys(folder for folder in folders if folder))


def _missing(program: Path) -> str:
    """Return what to install for the libraries that the program names and this Python lacks."""
    files = [name for name in named_in(program) if wheel_of(name) and not find_installed(name)]
    if not files:
        return ""
    wheels = " ".join(dict.fromkeys(map(wheel_of, files)))
    return (
        f"\n{', '.join(files)}: install with python -m pip install {wheels}, or have their calls "
        "computed with --libraries compute"
    )


def _file_of(command: Sequence[str], path: Path | None) -> Path:
    """Return the file that a command runs, `path` if one is given."""
    return path or Path(shutil.which(command[0]) or command[0])


def _environment(folders: Sequence[Path], recorder: str) -> dict[str, str]:
    library = folders[0]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _before(":".join(map(str, folders)), "LD_LIBRARY_PATH"),
        "LD_PRELOAD": _before(str(library / "libcuda.so.1"), "LD_PRELOAD"),
        "PYTHONPATH": _before(str(STARTUP), "PYTHONPATH"),
        **{name: str(folder_of(kind)) for name, kind in PYTHON_CACHES.items()},
        **asked_by_packages(),
        "NVTX_INJECTION64_PATH": str(library / "libcuda.so.1"),
        "CUTRACE_LIBCUDA": str(library / "within"),
        "CUTRACE_RECORDER": recorder,
    }


def asked_by_packages() -> dict[str, str]:
    """Return environment variables for the startup hooks and the Python packages."""
    return {
        "CUPY_ACCELERATORS": "",  # CUB's kernels are machine code; without, CuPy compiles its own
        "CUTRACE_PYTHON": sys.executable,
        "CUTRACE_SOURCES": str(made_folder("sources")),
        "CUTRACE_SCRATCH": str(_scratch(os.getpid()).folder),
        # CuTe DSL hands machine code to the driver; it writes its PTX, with lines, to a folder
        "CUTE_DSL_KEEP": ",".join(filter(None, (os.environ.get("CUTE_DSL_KEEP"), "ptx"))),
        "CUTE_DSL_DUMP_DIR": str(kept_ptx_folder()),
        "CUTE_DSL_LINEINFO": "1",
    }


def kept_ptx_folder() -> Path:
    """Return the folder where a recorded program's packages leave the PTX that they compile."""
    return Path(os.environ.get("CUTE_DSL_DUMP_DIR") or _scratch(os.getpid()).folder)


@cache
def _scratch(process: int) -> Claim:
    """Return the temporary folder for a program's processes; it is removed with this process."""
    return claim_scratch()


def _before(path: str, name: str) -> str:
    """Prepend a path to the value of an environment variable."""
    own = os.environ.get(name)
    return f"{path}:{own}" if own else path


def _start(
    command: Sequence[str],
    path: Path | None,
    environment: dict[str, str],
    output: int | None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, executable=path, env=environment, stdout=output)
    except FileNotFoundError:
        folder = Path(command[0]).parent
        names = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        close = nearest(Path(command[0]).name, names) if "/" in command[0] else ""
        raise CutraceError(f"{command[0]}: there is no such program{close}") from None
    except PermissionError:
        raise CutraceError(f"{command[0]}: {_why_not_executable(Path(command[0]))}") from None
    except OSError as error:
        raise CutraceError(f"{command[0]}: it cannot be started: {error.strerror}") from None


def _why_not_executable(path: Path) -> str:
    if path.is_dir():
        return "a folder; expected a program"
    if path.suffix == ".cu":
        return f"a source, which is built where it stands before --: cutrace record {path} --"
    return "it is not executable: chmod +x makes it so"


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a run: exit status (minus a signal), launches recorded and refused.

    `faults` of the refused ones are the kernels' own, `fault` is the first of them. `why` is the
    reason if we ended the program, empty if it ended by itself; `left_out` describes launches that
    were executed and are not in the trace. `codes` are the capabilities of machine code that ran.
    """

    status: int
    launches: int
    refused: int
    why: str = ""
    left_out: str = ""
    faults: int = 0
    fault: KernelFault | None = None
    codes: tuple[str, ...] = ()


@dataclass(slots=True)
class Greeter:
    """Sends the device's attributes to the program, and notes that it connected."""

    device: Device
    size: int
    greeted: bool = False

    def greet(self, process: int, library: int) -> Answer:
        """Answer the first message; `library` is the checksum of the sender's messages."""
        if library != checksum():
            raise OtherVersionError
        self.greeted = True
        facts = [self.device.facts[name] for name in fact_names()]
        data = struct.pack(f"<{len(facts)}q", *facts)
        return (BASE, self.size, CONSTANTS, TEXELS, data, self.device.name.encode())


@dataclass(frozen=True, slots=True)
class Order:
    """A run to make: `words` are the program's argv, `path` the executed file if it is another.

    The program is stopped after `launches` recorded launches of the chosen ones, or after
    `seconds`, if given. Its stdout goes to the file `output`, if given. `tally` shows the progress;
    `clock` is one of CLOCKS, `libraries` of LIBRARIES.
    """

    words: tuple[str, ...]
    path: Path | None = None
    launches: int | None = None
    seconds: float | None = None
    output: int | None = None
    choice: Choice = field(default_factory=Choice)
    tally: Tally = field(default_factory=Tally)
    clock: str = CLOCKS[0]
    libraries: str = LIBRARIES[0]


def record_program(order: Order, trace: Path, device: Device) -> Ended:
    """Run a program and write the trace of its launches.

    Raises CutraceError if it cannot be started or never uses CUDA.
    """
    library = build_library(find_toolkit(), find_host_compiler())
    library = library / RUN if order.libraries == RUN else library
    shared = SharedMemory()
    try:
        with ProgramSession(trace, shared) as session:
            child = Child(order.words, order.path, library, shared.file, order.output, order.clock)
            try:
                ended = _serve(order, child, session, shared, device)
            finally:
                child.close()
        writer = session.writer
        codes = tuple({each.code for each in writer.manifest.launches if each.code})
        return replace(ended, launches=writer.count, left_out=writer.left_out, codes=codes)
    finally:
        shared.close()


def _serve(
    order: Order, child: Child, session: ProgramSession, shared: SharedMemory, device: Device
) -> Ended:
    greeter = Greeter(device, shared.size)
    kept_ptx = kept_ptx_folder(), folder_of(PYTHON_CACHES["WARP_CACHE_PATH"])
    code = Code(session, device, kept_ptx)
    storage = Storage(session, device.facts["memory_bytes"])
    launches = Launches(session, code, storage, order.launches, order.choice, order.tally)
    texels = Texels(session, storage)
    parts = ({"HELLO": greeter.greet}, code.verbs, storage.verbs, texels.verbs, launches.verbs)
    status, why = _answer(child, Server(storage, parts), order.seconds)
    if not greeter.greeted and not why:
        is_script = order.words[0] == sys.executable and len(order.words) > 1
        reason = why_nothing_came(order.words[is_script], status)
        program = _file_of(order.words, order.path)
        missing = _missing(program) if order.libraries == RUN and status == NOT_STARTED else ""
        raise CutraceError(reason + missing)
    if why and order.tally.running:
        why += f", while launch {order.tally.run} ran, kernel `{order.tally.running}`"
    faults = launches.faults, launches.fault
    return Ended(status, order.tally.recorded, launches.refused, why, "", *faults)


def _answer(child: Child, server: Server, seconds: float | None) -> tuple[int, str]:
    """Serve messages until the program ends or is stopped; return exit status and reason."""
    try:
        with _alarm(seconds):
            for line in child.lines():
                if not server.answer_one(line):
                    child.drop(line)
            return child.wait(), ""
    except EnoughError as enough:
        child.stop()
        return 0, f"it was ended after {enough}, as asked"
    except KeyboardInterrupt:
        child.stop()
        return -signal.SIGINT, "it was interrupted"


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise EnoughError if the body runs longer than this."""
    if seconds is None:
        yield
        return

    def ring(number: int, frame: object) -> None:
        interrupt(EnoughError(f"{seconds:g} s"))

    # A signal, because the time may run out while the recorder executes a long kernel.
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

"""The session: device memory, modules and launches, recorded within a `with` block."""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, ClassVar, Self, TextIO, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ...base.errors import CutraceError, KernelFault, of_kind
from ...base.options import keywords
from ...traces.writer import TraceWriter
from ..front import cuda, ptx
from ..front.source import DEFAULT_TARGET, Compiled, Source, read_options
from ..simt.memory.memory import BufferPool, Memory
from .array import DeviceArray, Shape, allocate_array
from .destination import absolute, choose_trace, is_path, read_text
from .filter import read_filter
from .module import Module
from .record_options import SessionOptions, choose_options
from .recording import Recording
from .surface import Surface, TexelForm, make_surface
from .texture import Modes, Texture, make_texture


class Session:
    """A recording GPU: `with cutrace.Session("reverse.cutrace") as gpu: ...`.

    Without a path the trace is temporary and deleted at process exit. `trace` is its path, valid
    once the `with` block has ended well. An exception inside leaves no trace, except the
    KernelFault of a launch: then the trace has the launches before it, and its manifest the
    message; it has none if the first launch faults. Kernels print to `output`, by default
    `sys.stdout`. A kernel in which a warp runs more than `max_instructions` (default 2**28) stops
    with a KernelFault that names the loop; a launch of more than `max_threads` (default 2**28) is
    refused before it starts. With `check_uninitialized`, a load of global, shared or local memory
    bytes that neither the host nor a kernel has written is a KernelFault, too. `bounds` controls
    global memory accesses outside of every allocation: a KernelFault (`strict`), or, in 2 MB pages
    that contain part of an allocation, performed as a chip does, counted, and reported on stderr
    (`report`). `engine` is `array`, `compiled` (CutraceError for a kernel with an unsupported
    instruction) or `auto`: the trace is the same.

    `only` restricts the recording, never the execution: kernels, launches, blocks, warps, lines,
    spaces, each a list or comma-separated text (`only={"blocks": "0-7", "spaces": "shared"}`).
    Without `control` the executed instructions of warps are not recorded. `sample_blocks`, a number
    or a part of the grid (`"1%"`), draws that many blocks with the random seed `sample_seed`; only
    these run, unless blocks depend on one another; `within` draws as many as run in so many seconds
    per launch. A trace larger than `max_trace_size` (bytes, or
    `"10M"`) raises a CutraceError that says how far it got.
    """

    at_close: ClassVar[list[Callable[[Path], None]]] = []
    """Callbacks at the end of every session; they take the complete trace's path."""

    @keywords(SessionOptions)
    def __init__(
        self,
        path: str | Path | None = None,
        *,
        output: TextIO | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        for name in (n for n in options if n not in SessionOptions.__annotations__):
            raise TypeError(f"Session.__init__() got an unexpected keyword argument {name!r}")
        self._options = choose_options(**options)
        self._filter = read_filter(self._options)
        self.trace = self._named = choose_trace(path)
        self._output = output
        self._exits = ExitStack()
        self._opened: Recording | None = None

    def __repr__(self) -> str:
        state = (
            "recording" if self._is_open else "its trace is whole" if self._is_whole else "not open"
        )
        return f"<cutrace.Session {str(self._named)!r}: {state}>"

    def _repr_html_(self) -> str:
        """Return the notebook's view: the trace once it is complete."""
        if self._is_whole:
            from ...traces.reader import read_trace

            return read_trace(self.trace)._repr_html_()
        from html import escape

        return f"<code>{escape(repr(self))}</code>"

    def __enter__(self) -> Self:
        if self._opened:
            raise CutraceError(f"{self._named}: a session is opened once; make another Session()")
        writer = self._make_writer(self._named)
        self.trace = absolute(self._named)  # the current folder may change inside
        self._exits.enter_context(writer)
        self._opened = Recording(
            writer, self._print, self._options, self._filter, self._make_memory()
        )
        return self

    def _make_writer(self, path: Path) -> TraceWriter:
        return TraceWriter(
            path, self._filter.max_bytes, owns_columns=True, jobs=self._options.threads
        )

    def _make_memory(self) -> Memory:
        return Memory(self._options.check_uninitialized)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind and self._opened and not self._opened.owner.is_here:
            return  # a forked child exits: the session continues in the process that opened it
        self._recording.is_open = False
        if kind and not self._has_trace(problem):
            self._exits.__exit__(kind, problem, traceback)
            return
        with self._exits:
            self._recording.finish()
        if (values := self._options.final_values) is not None:
            values |= {name: of().copy() for name, of in self._recording.values.items()}
        BufferPool.end(self._recording.memory)  # the trace is complete: no launch uses this memory
        if problem:
            count = len(self._recording.resources)
            before = "the launch" if count == 1 else f"the {count} launches"
            problem.add_note(f"{self.trace} has {before} before it")
        for act in self.at_close:
            act(self.trace)

    def _has_trace(self, problem: BaseException | None) -> bool:
        """Return True if the session ends by a fault after other launches, and so has a trace."""
        fault, launches = self._recording.fault, self._recording.resources
        return isinstance(problem, KernelFault) and str(problem) == fault and bool(launches)

    def compile(
        self,
        source: str | Path,
        arch: str = DEFAULT_TARGET,
        options: Sequence[str] = (),
        name_expressions: Sequence[str] = (),
    ) -> Module:
        """Compile CUDA C++ from a file (a Path or a string without code) or from text.

        `arch` is a virtual architecture (`compute_75`), `options` are the compiler's (`-DN=4`),
        `name_expressions` the requested template instances (`scale<float, 4>`).
        """
        name, text = _read_source(source, "source.cu")
        cuda_source = Source(name, text, read_options(options, name_expressions))
        with of_kind("build"):
            return self._load(name, cuda.to_ptx(cuda_source, arch))

    def load_ptx(self, source: str | Path) -> Module:
        """Load PTX from a file (a Path or a string without code) or from text."""
        name, text = _read_source(source, "source.ptx")
        with of_kind("build"):
            return self._load(name, ptx.to_ptx(Source(name, text)))

    def to_device(self, values: ArrayLike, name: str | None = None) -> DeviceArray:
        """Copy a host array to new device memory; `name` is its name in tables."""
        host = np.asarray(values)
        array = allocate_array(self._recording, host.shape, host.dtype, name, is_pitched=False)
        array.copy_to_device(host)
        return array

    def device_array(
        self, shape: Shape, dtype: DTypeLike = np.float64, name: str | None = None
    ) -> DeviceArray:
        """Allocate device memory, which reads as zeros."""
        return allocate_array(self._recording, shape, dtype, name, is_pitched=False)

    def pitched_array(
        self, shape: tuple[int, ...], dtype: DTypeLike = np.float64, name: str | None = None
    ) -> DeviceArray:
        """Allocate rows that start at multiples of 256 bytes, as cudaMallocPitch does: see `pitch`.

        A row spans the last dimension: (100, 60) of float32 takes 100 times 256 bytes.
        """
        return allocate_array(self._recording, shape, dtype, name, is_pitched=True)

    def texture(
        self,
        array: DeviceArray | Surface | ArrayLike,
        address_mode: str | Sequence[str] = "clamp",
        filter_mode: str = "point",
        normalized_coords: bool = False,
        read_mode: str = "element",
        *,
        channels: int | None = None,
        layered: bool = False,
        cubemap: bool = False,
        name: str | None = None,
    ) -> Texture:
        """Create a texture, to pass to a kernel or to bind with `Module.bind_texture`.

        A texture of a host array keeps a copy, as a CUDA array does. Over a device array it reads
        linear memory as it is at each launch, over a surface the surface's texels at that time.
        Shapes are (width,), (height, width) or (depth, height, width), with the layers in front if
        `layered`. Channels are a structured dtype's fields, or a last axis of 2 or 4 if `channels`
        is set to that. A `cubemap` has six square layers, or with `layered` six per cube.

        `address_mode` is clamp, border, wrap or mirror, for all dimensions or one each, x first
        (wrap and mirror act as clamp without `normalized_coords`); `filter_mode` is point or
        linear; `read_mode` is element, or normalized_float for integers of 8 and 16 bits.
        CutraceError for invalid combinations.
        """
        modes = Modes(address_mode, filter_mode, normalized_coords, read_mode)
        return make_texture(
            self._recording, array, modes, TexelForm(channels, layered, cubemap), name
        )

    def surface(
        self,
        array: ArrayLike,
        *,
        channels: int | None = None,
        layered: bool = False,
        name: str | None = None,
    ) -> Surface:
        """Create a surface: a copy of a host array that kernels read and write (`surf2Dwrite`).

        Pass it to a kernel, or bind it with `Module.bind_surface`; `texture(surface, ...)` is a
        texture over the same texels. Axes are as for textures. CutraceError for arrays that no
        surface supports.
        """
        return make_surface(self._recording, array, TexelForm(channels, layered), name)

    @property
    def _is_open(self) -> bool:
        return self._opened is not None and self._opened.is_open

    @property
    def _is_whole(self) -> bool:
        return self._opened is not None and not self._opened.is_open and self.trace.is_dir()

    @property
    def _recording(self) -> Recording:
        if not self._opened:
            raise CutraceError("open the session first: `with cutrace.Session(...) as gpu:`")
        self._opened.owner.require(f"the session {str(self._named)!r}")
        return self._opened

    def _load(self, source_path: str, compiled: Compiled) -> Module:
        self._recording.check_open()
        names = self._name_sources(PurePath(source_path), compiled)
        text = compiled.ptx
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        text = ptx.without_folders(text, names.values())
        self._recording.trace.compiler(compiled.compiler)
        for sentence in compiled.compiler.missing:
            self._recording.remark(sentence)
        source = names.get(PurePath(source_path).as_posix(), "")
        return Module(self._recording, replace(compiled, ptx=text), source)

    def _name_sources(self, source_path: PurePath, compiled: Compiled) -> dict[str, str]:
        """Record the sources' texts; return their names in the trace by their names in the PTX.

        A trace contains no folders of this machine. A source given by an absolute path, and the
        headers beside it, are named relative to its folder; other files that PTX was compiled from
        by their names, those of CuPy's generated kernels by the kernel's.
        """
        folder = f"{source_path.parent.as_posix()}/" if source_path.is_absolute() else ""
        shown = {path: path.removeprefix(folder) for path in compiled.sources}
        return {
            path: self._recording.trace.source(
                _plain_file(name, compiled),
                compiled.sources[path],
            )
            for path, name in shown.items()
        }

    def _print(self, text: str) -> Any:
        readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        (self._output or sys.stdout).write(readable)


_GENERATED = re.compile(r"[0-9a-f]{32,64}\.cubin\.cu")
"""File of a kernel that CuPy compiled: a hash."""


def _plain_file(path: str, compiled: Compiled) -> str:
    """Return a path without the folders of this machine."""
    name = PurePath(path).name
    if compiled.kernels and _GENERATED.fullmatch(name):
        return f"{compiled.kernels[0].name.partition('<')[0]}.cu"
    return name if PurePath(path).is_absolute() else path


def _read_source(source: str | Path, unnamed: str) -> tuple[str, str]:
    """Return (name as given, text)."""
    if is_path(source):
        return str(source), read_text(Path(source))
    return unnamed, str(source)

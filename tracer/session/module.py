"""Compiled modules: their kernels and variables.

The functions below Module list the kernels of a source as written, explain a name that is not among
them, and name the shared arrays of Numba.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath

import pyarrow as pa

from ...base.errors import CutraceError, nearest
from ..front.source import Compiled, KernelSignature
from ..front.syntax.syntax import written_kernels
from ..sass.cubin import open_cubin
from ..simt.decode.load_module import NoRoomError, load_module
from ..simt.memory.memory import Allocation
from .arguments import read_signature
from .function import Function, Linked
from .kernel_facts import known_cubin, known_kernel, known_machine_code, known_module
from .record_options import PTX
from .recording import Recording
from .resources import ask_resources, resources_in, resources_of
from .surface import Surface
from .symbol import Symbol, declared_at, name_symbols
from .texture import Texture, bind, bind_surface


class Module:
    """Result of `Session.compile` and `Session.load_ptx`, with its variables in memory."""

    def __init__(self, recording: Recording, compiled: Compiled, source: str) -> None:
        self._recording = recording
        self._compiled = compiled
        self._source = source
        try:
            self._loaded = load_module(recording.memory, known_module(compiled.ptx))
        except NoRoomError as error:
            place = declared_at(error.variable, compiled.sources)
            raise CutraceError(f"{place}: {error.problem}") if place else error from None
        self._functions: dict[str, Function] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return its kernels' names in the source; template instances include their arguments."""
        return tuple(each.name for each in self._compiled.kernels)

    @property
    def signatures(self) -> tuple[KernelSignature, ...]:
        """Return the C signatures of its kernels."""
        return self._compiled.kernels

    @property
    def templates(self) -> tuple[KernelSignature, ...]:
        """Return its kernel templates without an instance."""
        return list_templates(self._compiled)

    @property
    def ptx(self) -> str:
        """Return the PTX text."""
        return self._compiled.ptx

    @property
    def symbols(self) -> Mapping[str, Allocation]:
        """Return its variables in memory by PTX name."""
        return self._loaded.symbols

    def get_function(self, name: str) -> Function:
        """Return a kernel by its source name, its PTX name, or as a template instance."""
        kernel_signature = self._find(name)
        if kernel_signature.mangled not in self._functions:
            self._functions[kernel_signature.mangled] = self._link(kernel_signature)
        return self._functions[kernel_signature.mangled]

    def get_global(self, name: str) -> Symbol:
        """Return a `__device__` or `__constant__` variable by its C or PTX name."""
        by_c_name = name_symbols(self._loaded)
        if name in by_c_name:
            return Symbol(self._recording, name, by_c_name[name])
        if name in self._loaded.symbols:
            return Symbol(self._recording, name, self._loaded.symbols[name])
        listed = ", ".join(by_c_name) or "none"
        raise CutraceError(
            f"{self._source} has no variable `{name}`{nearest(name, by_c_name)}; it has {listed}"
        )

    def bind_texture(self, name: str, texture: Texture) -> None:
        """Bind a texture to a texture reference by its C or PTX name."""
        bind(self._recording, self._compiled, self._loaded, name, texture)

    def bind_surface(self, name: str, surface: Surface) -> None:
        """Bind a surface to a source's surface reference, or to a PTX `.surfref`."""
        bind_surface(self._recording, self._loaded, name, surface)

    def _link(self, kernel_signature: KernelSignature) -> Function:
        kernel_facts = known_kernel(self._compiled.ptx, kernel_signature.mangled)
        parameters = kernel_facts.kernel.parameters
        signature = read_signature(kernel_signature, parameters, self._loaded.module.address_size)
        arch, assembly = self._recording.options.code, self._compiled.assembly
        lift = None
        if cubin := self._compiled.cubin:
            answer = resources_in(open_cubin(cubin, self._compiled.file), kernel_signature.mangled)
            lift = partial(
                known_cubin,
                cubin,
                self._compiled.file,
                self._compiled.ptx,
                kernel_signature.mangled,
            )
        elif arch == PTX:
            answer = ask_resources(self._compiled.ptx, kernel_facts.kernel, assembly)
        else:
            answer = resources_of(self._compiled.ptx, kernel_facts.kernel, arch, assembly)
            kernel_facts = known_machine_code(
                self._compiled.ptx, kernel_signature.mangled, arch, tuple(assembly)
            )
        variables = [each.name for each in kernel_facts.shared.variables.values()]
        names = numba_names(variables, kernel_facts.instructions, self._compiled.sources)
        place = self._loaded, self._recording.memory
        linked = Linked(kernel_facts, *place, signature, self._source, answer, names, lift)
        return Function(self._recording, linked)

    def _find(self, name: str) -> KernelSignature:
        symbol = self._compiled.names.get(name, name)
        exact = [each for each in self._compiled.kernels if each.mangled == symbol]
        named = exact or [e for e in self._compiled.kernels if _bare(e.name) == _bare(name)]
        if len(named) == 1:
            return named[0]
        if named:
            listed = "".join(f"\n  {each.mangled}  {each}" for each in named)
            raise CutraceError(f"{self._source} has several `{name}`, say one's PTX name:{listed}")
        everything = (*self.signatures, *self.templates)
        raise CutraceError(explain_missing(self._source, name, everything))


def _bare(name: str) -> str:
    return re.sub(r"\s+", "", name)


def list_written(text: str) -> tuple[KernelSignature, ...]:
    """Return the kernels of CUDA C++ as written; a template is `scale<T, N>(T *data)`."""
    return tuple(
        KernelSignature("", _written_name(each.name, each.template), each.parameters)
        for each in written_kernels(text)
    )


def _written_name(name: str, template: tuple[str, ...] | None) -> str:
    return name if template is None else f"{name}<{', '.join(template)}>"


def list_templates(compiled: Compiled) -> tuple[KernelSignature, ...]:
    """Return the templates that the compiler did not instantiate."""
    instances = {base_name(kernel.name) for kernel in compiled.kernels}
    written = (kernel for text in compiled.sources.values() for kernel in list_written(text))
    return tuple(w for w in written if "<" in w.name and base_name(w.name) not in instances)


def base_name(kernel: str) -> str:
    """Return a kernel's name without template arguments."""
    return kernel.partition("<")[0].strip()


def example_name(kernel: KernelSignature) -> str:
    """Return a launchable name: `scale<float, 16>` for a template; type parameters become float."""
    base, is_template, parameters = kernel.name.partition("<")
    if not is_template or kernel.mangled:
        return kernel.name
    words = set(re.findall(r"\w+", " ".join(c_type for c_type, _ in kernel.parameters)))
    names = re.findall(r"\w+", parameters)
    return f"{base}<{', '.join('float' if name in words else '16' for name in names)}>"


def is_launchable(name: str, kernels: tuple[KernelSignature, ...]) -> bool:
    """Return True if a written kernel has that name, with arguments if it is a template."""
    return any(
        base_name(kernel.name) == base_name(name) and ("<" in kernel.name) == ("<" in name)
        for kernel in kernels
    )


def explain_missing(source: str, name: str, kernels: tuple[KernelSignature, ...]) -> str:
    """Return the message for an unknown kernel: the nearest names, and all signatures."""
    templates = [each for each in kernels if "<" in each.name and not each.mangled]
    candidates = [each for each in templates if base_name(each.name) == name]
    if candidates:
        reason = f"; it is a template, to be launched as an instance: {example_name(candidates[0])}"
    else:
        reason = nearest(name, [each.name for each in kernels])
    listed = "".join(f"\n  {each}" for each in kernels) or " none"
    place = source or "a module from memory"
    return f"{place} has no kernel `{name}`{reason}; its kernels:{listed}"


_SHARED = re.compile(r"_cudapy_smem_(\d+)$")
_OPEN = "_cudapy_smem"
"""Prefix of all shared arrays of Numba."""


def numba_names(
    variables: Sequence[str], instructions: pa.Table, sources: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the names of a kernel's shared arrays by PTX name, such as `tile` of
    `tile = cuda.shared.array(...)` for `_cudapy_smem_1`; empty without arrays of Numba.

    Numba numbers the arrays of a process as it compiles them, those of one function from top to
    bottom. If the kernel has as many as a function of its source assigns, they have the names
    there. Otherwise (arrays of device functions, or removed ones) a name says where the array is
    first used. `instructions` is the kernel's table of the trace, `sources` are texts by path.
    """
    if not any(name.startswith(_OPEN) for name in variables):
        return {}
    places = instructions.select(["file", "line"]).to_pylist()
    lines = [(row["file"], row["line"]) for row in places]
    numbers = {name: int(match[1]) for name in variables if (match := _SHARED.match(name))}
    ordered = sorted(numbers, key=lambda name: numbers[name])
    assigned = [name for name in _assigned(lines, sources) if name]
    if len(assigned) == len(ordered) == len({*assigned}):
        return dict(zip(ordered, assigned, strict=True))
    texts = instructions["text"].to_pylist()
    firsts = {
        name: next((n for (_, n), text in zip(lines, texts, strict=True) if name in text), 0)
        for name in ordered
    }
    many = [*firsts.values()]
    return {
        name: f"shared memory{f' {index}' * (many.count(line) > 1)}, line {line}"
        for index, (name, line) in enumerate(firsts.items(), start=1)
    }


def _assigned(lines: Sequence[tuple[str, int]], sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the names that get a shared array in the functions that the lines belong to."""
    for file, text in sources.items():
        own = {line for name, line in lines if PurePath(name).name == PurePath(file).name}
        try:
            functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
        except (SyntaxError, ValueError):
            continue
        for function in functions:
            if own.intersection(range(function.lineno, (function.end_lineno or 0) + 1)):
                yield from _arrays(function)


def _arrays(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the targets of `cuda.shared.array(...)` from top to bottom."""
    assigns = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(assigns, key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(node.value, ast.Call) and _is_shared_array(node.value.func):
            target = node.targets[0]
            yield target.id if isinstance(target, ast.Name) else ""


def _is_shared_array(function: ast.expr) -> bool:
    """Return whether a function is `cuda.shared.array`, or `shared.array`."""
    return ast.unparse(function).split(".")[-2:] == ["shared", "array"]

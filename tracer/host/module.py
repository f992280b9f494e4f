"""A compiled module: its kernels and its variables."""

import re
from collections.abc import Mapping

from ...errors import CutraceError, nearest
from ..engine.memory.memory import Allocation, NoRoomError
from ..front.source import Compiled, KernelSignature
from .launch.function import Function, Linked
from .launch.kernel_facts import known_kernel, known_module
from .launch.resources import ask_resources
from .launch.signature import read_signature
from .listing import explain_missing, list_templates
from .recording import Recording
from .symbol import Symbol, declared_at, name_symbols
from .texture.reference import bind, bind_surface
from .texture.surface import Surface
from .texture.texture import Texture


class Module:
    """What `Session.compile` and `Session.load_ptx` return; its variables are in memory."""

    def __init__(self, recording: Recording, compiled: Compiled, source: str) -> None:
        self._recording = recording
        self._compiled = compiled
        self._source = source
        try:
            self._loaded = recording.memory.load(known_module(compiled.ptx))
        except NoRoomError as error:
            place = declared_at(error.variable, compiled.sources)
            raise CutraceError(f"{place}: {error.problem}") if place else error from None
        self._functions: dict[str, Function] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels, as in the source; template instances with their arguments."""
        return tuple(each.name for each in self._compiled.kernels)

    @property
    def signatures(self) -> tuple[KernelSignature, ...]:
        """Its kernels with their C signatures."""
        return self._compiled.kernels

    @property
    def templates(self) -> tuple[KernelSignature, ...]:
        """Its kernel templates of which nobody asked for an instance."""
        return list_templates(self._compiled)

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return self._compiled.ptx

    @property
    def symbols(self) -> Mapping[str, Allocation]:
        """Its variables in memory, by their names in PTX."""
        return self._loaded.symbols

    def get_function(self, name: str) -> Function:
        """Find a kernel by its name in the source, its PTX name, or as a template's instance."""
        spoken = self._find(name)
        if spoken.mangled not in self._functions:
            self._functions[spoken.mangled] = self._link(spoken)
        return self._functions[spoken.mangled]

    def get_global(self, name: str) -> Symbol:
        """Find a `__device__` or `__constant__` variable by its name in C or in PTX."""
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
        """Bind a texture to a texture reference of the source, by its name in C or in PTX."""
        bind(self._recording, self._compiled, self._loaded, name, texture)

    def bind_surface(self, name: str, surface: Surface) -> None:
        """Bind a surface to a reference of the source, or to a `.surfref` of the PTX."""
        bind_surface(self._recording, self._loaded, name, surface)

    def _link(self, spoken: KernelSignature) -> Function:
        known = known_kernel(self._compiled.ptx, spoken.mangled)
        parameters = known.kernel.parameters
        signature = read_signature(spoken, parameters, self._loaded.module.address_size)
        answer = ask_resources(self._compiled.ptx, known.kernel, self._compiled.assembly)
        linked = Linked(known, self._loaded, signature, self._source, answer)
        return Function(self._recording, linked)

    def _find(self, name: str) -> KernelSignature:
        wanted = self._compiled.names.get(name, name)
        exact = [each for each in self._compiled.kernels if each.mangled == wanted]
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

"""Manifest builder: collects a session's compilers, sources, events and launches."""

from collections.abc import Mapping
from dataclasses import replace

from ..base.errors import CutraceError
from .schema import Array, Compiler, Event, Launch, Manifest, Outside, Resources


class ManifestBuilder:
    """Builds a manifest; subclasses that also take rows of launches call `_begin`."""

    def __init__(self) -> None:
        self._compilers: list[Compiler] = []
        self._events: list[Event] = []
        self._launches: list[Launch] = []
        self._sources: dict[str, str] = {}
        self._fault = ""
        self._left_out = ""
        self._names: dict[str, str] = {}

    def compiler(self, compiler: Compiler) -> None:
        """Add a compiler; equal ones are stored once."""
        if compiler not in self._compilers:
            self._compilers.append(compiler)

    def source(self, name: str, text: str) -> str:
        """Add a source text and return its key in the manifest.

        The key is `name`, or `name (2)` and so on if that name has another text already.
        """
        key, number = name, 1
        while self._sources.get(key, text) != text:
            number += 1
            key = f"{name} ({number})"
        self._sources[key] = text
        return key

    def hand_on(self, other: "ManifestBuilder") -> None:
        """Copy the compilers and sources to another manifest, which launches their kernels."""
        for compiler in self._compilers:
            other.compiler(compiler)
        for name, text in self._sources.items():
            other.source(name, text)

    def event(self, event: Event) -> None:
        """Append a copy or a set; launches append their own events."""
        self._events.append(event)

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Set the assembler's resources of a launch's kernel, by launch number."""
        if not 0 <= launch < len(self._launches):
            raise CutraceError(f"no launch {launch}; there are {len(self._launches)}")
        self._launches[launch] = replace(self._launches[launch], resources=resources)

    def outside(self, launch: int, outsides: tuple[Outside, ...]) -> None:
        """Set the out-of-bounds accesses of a launch, by its number."""
        self._launches[launch] = replace(self._launches[launch], outside=outsides)

    def fault(self, message: str) -> None:
        """Set the message of the fault that ended the session."""
        self._fault = message

    def withdraw(self) -> None:
        """Remove the last launch, which was aborted."""
        number = len(self._launches) - 1
        self._launches.pop()
        self._events.remove(Event(kind="launch", launch=number))

    def rename(self, old: str, new: str) -> None:
        """Rename an array in all entries so far; no other array had the old name."""
        self._names[old] = new

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the entries so far."""
        return Manifest(
            compilers=tuple(self._compilers),
            events=tuple(self._with_name(event) for event in self._events),
            launches=tuple(map(_Renaming(self._names).rename, self._launches)),
            sources=self._sources,
            fault=self._fault,
            left_out=self._left_out,
        )

    def _begin(self, launch: Launch) -> int:
        """Append the next launch; return its number."""
        number = len(self._launches)
        self._launches.append(launch)
        self._events.append(Event(kind="launch", launch=number))
        return number

    def _with_name(self, event: Event) -> Event:
        new = self._names.get(event.array)
        return event if new is None else replace(event, array=new)


class _Renaming:
    """Renames arrays; launches that share a tuple of arrays still share it afterwards."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._last: tuple[tuple[Array, ...], tuple[Array, ...]] = ((), ())

    def rename(self, launch: Launch) -> Launch:
        """Return a launch with the new names."""
        arrays = self._rename_arrays(launch.arrays)
        names = (self._names.get(texture.array) for texture in launch.textures)
        textures = tuple(
            texture if name is None else replace(texture, array=name)
            for texture, name in zip(launch.textures, names, strict=True)
        )
        return replace(launch, arrays=arrays, textures=textures)

    def _rename_arrays(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        if arrays is not self._last[0]:
            names = (self._names.get(array.name) for array in arrays)
            new = tuple(
                array if name is None else replace(array, name=name)
                for array, name in zip(arrays, names, strict=True)
            )
            self._last = arrays, arrays if new == arrays else new
        return self._last[1]

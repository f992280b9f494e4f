"""A manifest in the making: what a session tells of compilers, sources, events and launches."""

from dataclasses import replace

from ..errors import CutraceError
from .schema import Compiler, Event, Launch, Manifest, Outside, Resources


class Draft:
    """Gathers a manifest; `_begin` is for those that take the rows of launches besides."""

    def __init__(self) -> None:
        self._compilers: list[Compiler] = []
        self._events: list[Event] = []
        self._launches: list[Launch] = []
        self._sources: dict[str, str] = {}
        self._fault = ""

    def compiler(self, compiler: Compiler) -> None:
        """Keep who compiled; the same compiler is kept once."""
        if compiler not in self._compilers:
            self._compilers.append(compiler)

    def source(self, name: str, text: str) -> str:
        """Keep a source text and return its key in the manifest.

        The key is `name`, or `name (2)` and so on where that name has another text already.
        """
        key, number = name, 1
        while self._sources.get(key, text) != text:
            number += 1
            key = f"{name} ({number})"
        self._sources[key] = text
        return key

    def event(self, event: Event) -> None:
        """Append a copy or a set; launches append theirs themselves."""
        self._events.append(event)

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Set what the assembler made of the kernel of a launch, by its number."""
        if not 0 <= launch < len(self._launches):
            raise CutraceError(f"no launch {launch}; there are {len(self._launches)}")
        self._launches[launch] = replace(self._launches[launch], resources=resources)

    def outside(self, launch: int, found: tuple[Outside, ...]) -> None:
        """Set what lanes did outside of allocations in a launch, by its number."""
        self._launches[launch] = replace(self._launches[launch], outside=found)

    def fault(self, message: str) -> None:
        """Keep the message of the fault in the last launch, and forget that launch."""
        self._fault = message
        self.withdraw()

    def withdraw(self) -> None:
        """Forget the last launch, which was given up."""
        number = len(self._launches) - 1
        self._launches.pop()
        self._events.remove(Event(kind="launch", launch=number))

    def rename(self, old: str, new: str) -> None:
        """Call an array by another name in what was told so far."""
        self._events = [replace(e, array=new) if e.array == old else e for e in self._events]
        self._launches = [_renamed(launch, old, new) for launch in self._launches]

    @property
    def manifest(self) -> Manifest:
        """The manifest of what has been told so far."""
        return Manifest(
            compilers=tuple(self._compilers),
            events=tuple(self._events),
            launches=tuple(self._launches),
            sources=self._sources,
            fault=self._fault,
        )

    def _begin(self, launch: Launch) -> int:
        """Keep the next launch; return its number."""
        number = len(self._launches)
        self._launches.append(launch)
        self._events.append(Event(kind="launch", launch=number))
        return number


def _renamed(launch: Launch, old: str, new: str) -> Launch:
    arrays = tuple(replace(a, name=new) if a.name == old else a for a in launch.arrays)
    textures = tuple(replace(t, array=new) if t.array == old else t for t in launch.textures)
    return replace(launch, arrays=arrays, textures=textures)

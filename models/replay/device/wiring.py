"""Wiring: the models of a device, found by name and connected as its stages specify.

`model = "coalescer"` is the class `Coalescer` of `models/coalescer.py`. Other packages and files
can supply models too (`find_model`).
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast

from ....base.config import Where, make
from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest
from ....base.plugins import MODELS, extension_names, load_extension
from ..interface.model import ACCESSES, Kind, Members, Model, read_members
from .guarded import Guarded, Spent, raised_at

STAGE_KEYS = ("model", "from", "scope", "beside_shared")
"""The keys of a stage that do not belong to its model."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`[stage.NAME]` of a device: a model, the sources of its rows, and the model's own keys.

    `sources` are state spaces and names of other stages. `scope` is the number of instances: one
    per `sm`, `cluster` or `gpc`, one for the `gpu`, or a number: one for so many SMs that receive
    consecutive blocks. If it is `beside_shared`, its key `bytes` includes the shared memory that a
    launch sets aside.
    """

    name: str
    model: str
    sources: tuple[str, ...]
    scope: str = "sm"
    keys: Mapping[str, object] = field(default_factory=dict)
    beside_shared: bool = False
    where: Where | None = field(default=None, compare=False, repr=False)

    def find(self, file: str) -> Where:
        """Return the file to blame for its keys: the device's file by default."""
        return self.where or Where(f"[stage.{self.name}]", file, file)

    def without(self, shared: int) -> "Stage":
        """Return the stage with `shared` bytes set aside for shared memory."""
        size = self.keys.get("bytes")
        if not self.beside_shared or not isinstance(size, int):
            return self
        return replace(self, keys={**self.keys, "bytes": size - shared})


ACCESS = Stage("access", "access", tuple(ACCESSES))
"""The stage of every device before its own: the requested bytes."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A stage, the state spaces that reach it, and the factory of its model.

    `spaces` are all that reach it, `direct` those with rows straight from the trace; `after`
    are the stages that feed it. `build` makes a model in its initial state.
    """

    stage: Stage
    spaces: tuple[str, ...]
    direct: tuple[str, ...]
    after: tuple[str, ...]
    build: Callable[[], Model]
    members: Members

    @property
    def counters(self) -> tuple[str, ...]:
        """The names of the counters of its model."""
        return self.members.counters

    @property
    def period(self) -> int:
        """The period of its model in bytes, or 0."""
        return self.members.period

    def name(self, kind: Kind, counter: str) -> str:
        """Return a raw counter's name: `global_load_transactions`, `global_load_l1_hits`."""
        return self._prefix(kind) + counter

    def _prefix(self, kind: Kind) -> str:
        return f"{kind.prefix}{self.stage.name}_" if self.after else kind.prefix

    def names(self) -> Iterator[str]:
        """Yield the names of all its raw counters."""
        for space in self.spaces:
            for access in ACCESSES[space]:
                prefix = self._prefix(Kind(space, access, "", 0))
                yield from (prefix + counter for counter in self.counters)


def wire(stages: Sequence[Stage], file: str) -> tuple[Wire, ...]:
    """Wire a device's stages, each after those that feed it; the first is ACCESS.

    Raises `CutraceError` for an unknown source or model, a wrong key, a cycle of stages, and two
    stages with one raw counter.
    """
    _check_sources(stages, file)
    wires: dict[str, Wire] = {}
    waiting = [ACCESS, *stages]
    while waiting:
        ready = [s for s in waiting if all(n in ACCESSES or n in wires for n in s.sources)]
        if not ready:
            raise CutraceError(f"{file}: stages {', '.join(s.name for s in waiting)} form a circle")
        waiting.remove(ready[0])
        wires[ready[0].name] = _wire(ready[0], wires, file)
    _check_names([*wires.values()], file)
    return tuple(wires.values())


def model_keys(name: str, where: str) -> tuple[str, ...]:
    """Return the keys of a model's stages beside STAGE_KEYS."""
    return _parameters(find_model(name, where))


@cache
def _parameters(model: Callable[..., Model]) -> tuple[str, ...]:
    return tuple(inspect.signature(model).parameters)


def _wire(stage: Stage, wires: dict[str, Wire], file: str) -> Wire:
    """Wire one stage, after its sources."""
    where = stage.find(file)
    model = find_model(stage.model, where.of("model"))
    keys = dict(stage.keys)

    spent = Spent()

    def build() -> Model:
        own = partial(make, model, keys, where)
        return Guarded(own, stage.model, spent) if is_foreign(stage.model) else own()

    first = build()
    members = first.members() if isinstance(first, Guarded) else read_members(first)
    direct = tuple(name for name in stage.sources if name in ACCESSES)
    after = tuple(name for name in stage.sources if name in wires)
    spaces = dict.fromkeys([*direct, *(space for name in after for space in wires[name].spaces)])
    return Wire(stage, tuple(spaces), direct, after, build, members)


def _check_sources(stages: Sequence[Stage], file: str) -> None:
    """Refuse duplicate names, and sources that are neither a state space nor a stage."""
    names = [stage.name for stage in stages]
    for stage in stages:
        if stage.name in (*ACCESSES, ACCESS.name):
            raise CutraceError(f"{stage.find(file).of('model')}: the name is taken")
        for source in stage.sources:
            if source not in (*ACCESSES, *names):
                raise CutraceError(
                    f"{stage.find(file).of('from')}: no state space or stage {source!r} to come "
                    f"from{nearest(source, [*ACCESSES, *names])}"
                )


def _check_names(wires: Sequence[Wire], file: str) -> None:
    """Refuse two stages with one raw counter."""
    named: dict[str, str] = {}
    for wire in wires:
        for name in wire.names():
            other = named.setdefault(name, wire.stage.name)
            if other != wire.stage.name:
                raise CutraceError(
                    f"{file}: stages {other} and {wire.stage.name} both count `{name}`"
                )


FOLDER = Path(__file__).parents[2]


@cache
def model_names() -> tuple[str, ...]:
    """Return the names of the models that come with cutrace, sorted."""
    return tuple(sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__"}))


def is_foreign(name: str) -> bool:
    """Return whether a model does not come with cutrace."""
    return name not in model_names()


def find_model(name: str, where: str) -> Callable[..., Model]:
    """Return the class of a model; raises `CutraceError` if there is none."""
    module, _, member = name.rpartition(":")
    try:
        if not module:
            return _named(name, where)
        namespace = (
            import_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
        model: Callable[..., Model] = getattr(namespace, member)
    except CutraceError:
        raise
    except Exception as error:  # whatever a module does that is imported
        raise CutraceError(
            f"{where}: cannot import model {name!r}: {type(error).__name__}: {error}"
            f"{raised_at(error)}"
        ) from error
    return model


def seen_from(folder: Path, name: str) -> str:
    """Return the name of a model independent of the folder: a file with its absolute path."""
    module, _, member = name.rpartition(":")
    return f"{(folder / module).resolve()}:{member}" if module.endswith(".py") else name


@cache
def _shipped(name: str) -> Callable[..., Model]:
    module = importlib.import_module(f"{__name__.rpartition('.replay.')[0]}.{name}")
    return cast(Callable[..., Model], getattr(module, name.title()))


def _named(name: str, where: str) -> Callable[..., Model]:
    if name in model_names():
        return _shipped(name)
    own = extension_names(MODELS)
    if name in own:
        return cast(Callable[..., Model], load_extension(MODELS, name))
    names = (*model_names(), *own)
    raise CutraceError(
        f"{where}: no model {name!r}{nearest(name, names)}; there are {', '.join(names)}, and "
        "`my_model.py:MyModel` or `my_package.my_model:MyModel` names one of your own"
    )


def import_file(path: Path) -> ModuleType:
    """Import a file, once while its content does not change."""
    text = path.read_bytes()
    name = f"cutrace_model_{path.stem}_{blake2b(text, digest_size=8).hexdigest()}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]

"""`cutrace check --model`: test a user's model against the interface contract."""

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import CheckFailed, CutraceError
from ..options.quote import quote

if TYPE_CHECKING:
    from ...models.replay.device.conformance import Build


def check_model_here(name: str) -> str:
    """Test each model; raise `CheckFailed` with its violations of the contract.

    `name` is a device file with custom stages, a file with a model, `FILE.py:CLASS` for one of
    several, or any other model name that a device file accepts.
    """
    from ...models.replay.device.conformance import ROWS, SIZES, check_model

    faults, tried = [], []
    for build, called, spaces, lanes in _models(name):
        faults += check_model(build, called, spaces, lanes)
        tried.append(called)
    if faults:
        raise CheckFailed("\n".join(faults))
    sizes = ", ".join(map(str, SIZES))
    device = quote(name) if name.endswith(".toml") else "DEVICE.toml"
    lines = (
        f"model {called} keeps the contract: {ROWS} rows, also in batches of {sizes}"
        for called in tried
    )
    return "\n".join((*lines, f"next: cutrace analyze TRACE -d {device}"))


def _models(name: str) -> Iterator[tuple["Build", str, tuple[str, ...], int]]:
    """Yield each model: its constructor, name, state spaces, and number of lanes."""
    if name.endswith(".toml"):
        yield from _of_device(name)
        return
    from ...models.replay.device.wiring import find_model

    reference = f"{name}:{_only_class(Path(name))}" if name.endswith(".py") else name
    build: Any = find_model(reference, "--model")
    needed = [
        key
        for key, parameter in inspect.signature(build).parameters.items()
        if parameter.default is parameter.empty
    ]
    if needed:
        raise CutraceError(
            f"--model {name}: it has keys without a default, {', '.join(needed)}: name a device's"
            " file, whose stage says them"
        )
    yield build, reference, ("global",), 32


def _of_device(name: str) -> Iterator[tuple["Build", str, tuple[str, ...], int]]:
    from ...models.replay.device.device import load_device
    from ...models.replay.device.wiring import is_foreign, wire

    device = load_device(name)
    own = [w for w in wire(device.stages, device.file) if is_foreign(w.stage.model)]
    if not own:
        raise CutraceError(
            f"--model {name}: all its stages have models of cutrace's, which are tested"
        )
    for each in own:
        lanes = 1 if each.after else 32
        build = partial(_unguarded, each.build)
        yield build, f"{each.stage.name} of {name}", each.spaces, lanes


def _unguarded(build: Any) -> Any:
    return build().model


def _only_class(path: Path) -> str:
    """Return the name of the only class in a file that has a `step`."""
    from ...models.replay.device.wiring import import_file

    try:
        module = import_file(path)
    except Exception as error:
        raise CutraceError(f"--model {path}: {type(error).__name__}: {error}") from error
    classes = inspect.getmembers(module, inspect.isclass)
    own = [n for n, c in classes if c.__module__ == module.__name__ and hasattr(c, "step")]
    if len(own) != 1:
        raise CutraceError(
            f"--model {path}: {len(own)} classes have a `step`"
            f"{': ' * bool(own)}{', '.join(own)}; expected one, or {path}:CLASS"
        )
    return own[0]

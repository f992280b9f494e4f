"""Find the class of a model by what a device's file calls it.

`coalescer` is the class `Coalescer` of `models/coalescer.py`, or an entry point of that name in the
group `cutrace.models` of a package that is installed; `my_package.my_model:MyModel` can be
imported; `my_model.py:MyModel` is a class of a file, seen from the folder of the device's file.
"""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast

from ....errors import CutraceError, nearest
from ....extension import MODELS, extension_names, load_extension
from ..seam import Model

FOLDER = Path(__file__).parents[2]


@cache
def model_names() -> tuple[str, ...]:
    """Return the names of the models that come with cutrace, sorted."""
    return tuple(sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__"}))


def is_foreign(name: str) -> bool:
    """Whether a model is not one of cutrace's."""
    return name not in model_names()


def find_model(name: str, where: str) -> Callable[..., Model]:
    """Return the class of a model. `CutraceError` if there is none."""
    module, _, member = name.rpartition(":")
    try:
        if not module:
            return _named(name, where)
        found = (
            import_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
        model: Callable[..., Model] = getattr(found, member)
    except CutraceError:
        raise
    except Exception as error:  # whatever a module does that is imported
        raise CutraceError(
            f"{where}: cannot import model {name!r}: {type(error).__name__}: {error}"
        ) from error
    return model


def seen_from(folder: Path, name: str) -> str:
    """Return the name of a model as it is from everywhere: a file's with its whole path."""
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
    known = (*model_names(), *own)
    raise CutraceError(
        f"{where}: no model {name!r}{nearest(name, known)}; there are {', '.join(known)}, and "
        "`my_model.py:MyModel` or `my_package.my_model:MyModel` names one of your own"
    )


def import_file(path: Path) -> ModuleType:
    """Import a file, once as long as it says the same."""
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

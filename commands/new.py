"""`cutrace new`: a model of one's own to begin with, which runs and is tested."""

from pathlib import Path
from typing import Annotated

from ..base.errors import CutraceError, nearest
from .options.command_line import quote
from .options.verb import argument, value, verb

TEMPLATES = Path(__file__).parent / "templates"
"""One folder per kind; files have the suffix .txt, so that tools do not process them."""
TEMPLATE_NAME = "my_model"
"""Placeholder for the name."""


@verb("Look up", "cutrace new model tlb", "cutrace new model tlb --folder models")
def new(
    kind: Annotated[str, argument("What to write: a model.", "model")],
    name: Annotated[str, argument("Model name (lower-case letters and underscores).")],
    folder: Annotated[Path, value("Parent folder of the new folder.", None)] = Path(),
) -> str:
    """Write a model of your own, its device, counters and tests, to begin with."""
    from ..models.replay.device.wiring import model_names

    kinds = [each.name for each in TEMPLATES.iterdir()]
    if kind not in kinds:
        raise CutraceError(
            f"no template {kind!r}{nearest(kind, kinds)}; expected {', '.join(kinds)}"
        )
    if not name.isidentifier() or name != name.lower() or name in model_names():
        raise CutraceError(
            f"{name!r} cannot be a model's name: expected small letters, digits and underscores,"
            " and no name of a model of cutrace's"
        )
    target = folder / name
    if target.exists():
        raise CutraceError(f"{target} is there already: name another folder, or remove it")
    return _write(kind, name, target)


def _write(kind: str, name: str, target: Path) -> str:
    """Write a template's files, with `TEMPLATE_NAME` replaced by the name."""
    changes = {TEMPLATE_NAME: name, _camel(TEMPLATE_NAME): _camel(name)}
    target.mkdir(parents=True)
    for each in sorted((TEMPLATES / kind).iterdir()):
        text = each.read_text(encoding="utf-8")
        for old, new in changes.items():
            text = text.replace(old, new)
        (target / each.stem.replace(TEMPLATE_NAME, name)).write_text(text, encoding="utf-8")
    listed = "\n".join(f"  {path.name}" for path in sorted(target.iterdir()))
    return f"{target}\n{listed}\nnext: cutrace check --model {quote(target / f'{name}.toml')}"


def _camel(name: str) -> str:
    """Return `my_model` as a class name: `MyModel`."""
    return "".join(part.capitalize() for part in name.split("_"))

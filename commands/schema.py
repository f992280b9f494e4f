"""`cutrace schema`: the JSON Schemas of everything that `--format json` prints."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from ..base.errors import CutraceError, nearest
from .options.complete import starting
from .options.verb import argument, verb

MANIFEST = Path(__file__).parents[1] / "traces" / "manifest.schema.json"


def schemas() -> Mapping[str, Path]:
    """Return the schema of each format, by the word in the middle of `cutrace-NAME-N`."""
    own = sorted((Path(__file__).parent / "schemas").glob("*.json"))
    return {**{path.stem: path for path in own}, "manifest": MANIFEST}


@verb("Look up", "cutrace schema", "cutrace schema judge > judge.schema.json")
def schema(
    name: Annotated[
        str | None,
        argument(
            "A format: NAME of the object's `format`, cutrace-NAME-N; or manifest, a trace's",
            complete=starting(schemas),
        ),
    ] = None,
) -> str:
    """List the formats of JSON, or print the JSON Schema of one."""
    every = schemas()
    if name is None:
        return "\n".join((*every, "", "next: cutrace schema NAME"))
    short = re.sub(r"-\d+$", "", name.removeprefix("cutrace-"))
    if short not in every:
        raise CutraceError(f"no format {name!r}{nearest(short, every)}; `cutrace schema` lists")
    return every[short].read_text(encoding="utf-8")

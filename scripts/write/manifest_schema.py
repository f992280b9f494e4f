"""Write traces/manifest.schema.json: `python scripts/write/manifest_schema.py`.

The JSON schema of `manifest.json`, for readers that do not import cutrace, is made of the
dataclasses that are its grammar.
"""

import json
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from cutrace.traces.manifest import LIKE, LONGEST, hints
from cutrace.traces.schema import FORMAT_VERSION, Launch, Manifest, Space

PAGE = Path(__file__).parents[2] / "traces" / "manifest.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {bool: "boolean", float: "number", int: "integer", str: "string"}


def manifest_schema() -> dict[str, Any]:
    """Return the schema of a manifest: an unknown key is an error, and so is a missing one."""
    kinds: dict[str, Any] = {}
    whole = _record(Manifest, kinds)
    whole["properties"]["format_version"] = {"const": FORMAT_VERSION}
    whole["required"] = ["format_version", *whole.get("required", [])]
    full = kinds[Launch.__name__]
    like = {"type": "integer", "minimum": 0}
    short = {**full, "properties": {LIKE: like, **full["properties"]}, "required": [LIKE]}
    kinds["LaunchLike"] = short
    each = [{"$ref": f"#/$defs/{name}"} for name in (Launch.__name__, "LaunchLike")]
    whole["properties"]["launches"] = {"type": "array", "items": {"oneOf": each}}
    return {
        "$schema": DIALECT,
        "title": "manifest.json of a cutrace trace",
        **whole,
        "$defs": kinds,
    }


def _record(kind: type, kinds: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass; those that it has inside go to `kinds`."""
    required = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    made: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(hint, kinds) for name, hint in hints(kind).items()},
        "additionalProperties": False,
    }
    return made | ({"required": required} if required else {})


def _schema(hint: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """The schema of an annotated type."""
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in kinds:
            kinds[hint.__name__] = {}
            kinds[hint.__name__] = _record(hint, kinds)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if get_origin(hint) is tuple:
        return _array(get_args(hint), kinds)
    if hint is Space:
        return {"enum": [space.name.lower() for space in Space]}
    if isinstance(hint, UnionType):
        return {"type": [_PLAIN[each] for each in get_args(hint)]}
    return {"type": _PLAIN[hint]} | ({"maxLength": LONGEST} if hint is str else {})


def _array(items: tuple[Any, ...], kinds: dict[str, Any]) -> dict[str, Any]:
    """A tuple of one type and any length, or of so many values."""
    if items[-1] is Ellipsis:
        return {"type": "array", "items": _schema(items[0], kinds)}
    each = [_schema(item, kinds) for item in items]
    return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}


def text() -> str:
    """The whole file."""
    return json.dumps(manifest_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

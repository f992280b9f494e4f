"""Plain option values, without a pydantic validator for each.

Newer releases of typer ask pydantic to check every option, also those that nobody gave: importing
it and building its validators takes a tenth of a second. Texts and paths need no check.
"""

from functools import partial
from pathlib import Path
from typing import Any

_PLAIN: dict[Any, type] = {str: str, Path: Path}
_LISTS: dict[Any, type] = {list[str]: str, list[Path]: Path}


def take_as_given(command: Any) -> None:
    """Let texts, paths and options that are not given pass, of a command and the verbs in it."""
    parameters = command.get_params

    def plain(context: Any) -> list[Any]:
        found: list[Any] = parameters(context)  # with `--help`, which is no parameter before
        for parameter in found:
            described = getattr(parameter, "type_descriptor", None)  # older releases have none
            if described is not None and "process_value" not in vars(parameter):
                checked = parameter.process_value
                parameter.process_value = partial(_take, parameter, described.annotation, checked)
        return found

    command.get_params = plain
    for verb in getattr(command, "commands", {}).values():
        take_as_given(verb)


def _take(parameter: Any, kind: Any, checked: Any, context: Any, value: Any) -> Any:
    """Return a value as typer would; values missing or in need of a check are left to typer."""
    if value is None and not parameter.required:
        plain: Any = () if parameter.multiple or parameter.nargs == -1 else None
    elif kind in _PLAIN and isinstance(value, str):
        plain = _PLAIN[kind](value)
    elif kind in _LISTS and isinstance(value, (list, tuple)) and value:
        plain = [_LISTS[kind](item) for item in value]
    else:
        return checked(context, value)
    return parameter.callback(context, parameter, plain) if parameter.callback else plain

"""What a program and its recorder say to one another, read from the list that the library has.

`runtime/wire.h` names each message with the fields of question and answer; here they are packed
and unpacked by it.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ...base.dataclass import dataclass

RUNTIME = Path(__file__).with_name("runtime")
HEAD = struct.Struct("<II")
"""The kind of a message, or the error of an answer; the bytes that follow."""

NO_REPLY = "-"
"""The fields of an answer that nobody waits for."""

_MESSAGE = re.compile(r'MESSAGE\((\w+), (\d+), "(\w*)", "([\w-]*)"\)')
_FACT = re.compile(r"^    FACT\((\w+)\)", re.MULTILINE)
_FIELDS = {"I": struct.Struct("<I"), "Q": struct.Struct("<Q")}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of message: its name, and the fields of question and answer."""

    name: str
    question: str
    answer: str


@cache
def kinds() -> dict[int, Kind]:
    """All kinds of messages by their numbers."""
    messages = _MESSAGE.findall(_header())
    return {int(number): Kind(name, request, reply) for name, number, request, reply in messages}


@cache
def fact_names() -> tuple[str, ...]:
    """What a program may ask of its device, in the order in which it is told."""
    return tuple(_FACT.findall(_header()))


def _header() -> str:
    return (RUNTIME / "wire.h").read_text(encoding="utf-8")


def unpack(fields: str, data: bytes) -> list[Any]:
    """Read fields: integers, and bytes for an `s`. ValueError if these are not the data's."""
    values: list[Any] = []
    at = 0
    for field in fields:
        size, form = 0, _FIELDS["I" if field == "s" else field]
        if at + form.size <= len(data):
            (value,) = form.unpack_from(data, at)
            at += form.size
            size = value if field == "s" else 0
            values.append(data[at : at + size] if field == "s" else value)
        at += size
    if at != len(data) or len(values) != len(fields):
        raise ValueError(f"a message of {len(data)} bytes, expected the fields {fields}")
    return values


def pack(fields: str, values: Iterable[Any]) -> bytes:
    """Write fields: integers, and bytes for an `s`."""
    parts = []
    for field, value in zip(fields, values, strict=True):
        if field == "s":
            parts += [_FIELDS["I"].pack(len(value)), bytes(value)]
        else:
            parts.append(_FIELDS[field].pack(value))
    return b"".join(parts)


Answer: TypeAlias = Sequence[Any] | int
Verbs: TypeAlias = Mapping[str, Callable[..., Answer]]
"""What answers a message, by its name."""

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
INVALID_CHANNEL_DESCRIPTOR = 20
INVALID_RESOURCE_HANDLE = 400
SYMBOL_NOT_FOUND = 500
INVALID_FILTER_SETTING = 26
INVALID_NORM_SETTING = 27
NOT_READY = 600
ILLEGAL_ADDRESS = 700
LAUNCH_TIMEOUT = 702
ASSERT = 710
MISALIGNED_ADDRESS = 716
LAUNCH_FAILURE = 719
NOT_SUPPORTED = 801
INVALID_CLUSTER_SIZE = 912
INVALID_IMAGE = 200
NO_IMAGE = 209
"""cudaError_t, of CUDA's driver_types.h."""

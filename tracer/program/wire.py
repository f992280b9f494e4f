"""The wire format of the RPC between a program and its recorder.

`runtime/wire.h` is the single definition: it lists each message with the fields of request and
reply. This module parses that list, and packs and unpacks messages by it.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

RUNTIME = Path(__file__).with_name("runtime")
HEAD = struct.Struct("<II")
"""Message header: the kind of a request or the error of a reply, and the payload size in bytes."""

NO_REPLY = "-"
"""Fields of a reply that is not sent."""

_MESSAGE = re.compile(r'MESSAGE\((\w+), (\d+), "(\w*)", "([\w-]*)"\)')
_FACT = re.compile(r"^    FACT\((\w+)\)", re.MULTILINE)
_FIELDS = {"I": struct.Struct("<I"), "Q": struct.Struct("<Q")}


class OtherVersionError(CutraceError):
    """The program's library has other messages than this recorder."""

    def __init__(self) -> None:
        super().__init__(
            "this program has loaded the runtime library of another version of cutrace: build it "
            "again, or leave $LD_PRELOAD and $LD_LIBRARY_PATH as `cutrace record` sets them"
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of message: its name, and the fields of request and reply."""

    name: str
    question: str
    answer: str


@cache
def kinds() -> dict[int, Kind]:
    """Return all kinds of messages by number."""
    messages = _MESSAGE.findall(_header())
    return {int(number): Kind(name, request, reply) for name, number, request, reply in messages}


@cache
def fact_names() -> tuple[str, ...]:
    """Return the names of the device attributes, in wire order."""
    return tuple(_FACT.findall(_header()))


def checksum() -> int:
    """Return a checksum of all messages; a program of another version has another one."""
    return crc32(_header().encode())


def _header() -> str:
    return (RUNTIME / "wire.h").read_text(encoding="utf-8")


def unpack(fields: str, data: bytes) -> list[Any]:
    """Unpack fields: integers, and bytes for an `s`. Raises ValueError if the data does not fit."""
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
    """Pack fields: integers, and bytes for an `s`."""
    parts = []
    for field, value in zip(fields, values, strict=True):
        if field == "s":
            parts += [_FIELDS["I"].pack(len(value)), bytes(value)]
        else:
            parts.append(_FIELDS[field].pack(value))
    return b"".join(parts)


Answer: TypeAlias = Sequence[Any] | int
Verbs: TypeAlias = Mapping[str, Callable[..., Answer]]
"""The handler of each message, by the message's name."""

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
ILLEGAL_INSTRUCTION = 715
MISALIGNED_ADDRESS = 716
LAUNCH_FAILURE = 719
NOT_SUPPORTED = 801
INVALID_CLUSTER_SIZE = 912
INVALID_IMAGE = 200
NO_IMAGE = 209
INVALID_PTX = 218
"""cudaError_t, from CUDA's driver_types.h."""

"""What nvcc puts into a program: images with PTX and machine code for several architectures.

An image has a head (magic, version, the head's bytes, the bytes of all entries), then entries, each
with a head of its own: its kind, its architecture, flags that say whether and how it is packed.
Facts of the format: ZLUDA and cuobjdump's output; checked against what nvcc 13 writes.
"""

import re
import struct
from collections.abc import Iterator

import pyarrow as pa

from ...errors import CutraceError
from ...lazy_dataclass import dataclass

MAGIC = 0xBA55ED50
BUNDLE_MAGIC = 0x52545543
"""Of what our library's linker collects: `driver/bundle.h`."""

PTX, MACHINE_CODE = 1, 2
_HEAD = struct.Struct("<IHHQ")
_BUNDLE_HEAD = struct.Struct("<IIQ")
_ENTRY = struct.Struct("<HHIQIIQI")
_LZ4, _ZSTD = 0x2000, 0x8000
_MOVES_REGISTERS = re.compile(r"--compile-only$|-c$|--?maxrregcount=\d+$|-O[0-3]$")
_TARGET = re.compile(rb"^\s*\.target\s+sm_\d+([af]?)", re.MULTILINE)
_DEVICE_RUNTIME = "__cudaDeviceSynchronizeDeprecationAvoidance()"
"""A function of the library for launches by kernels, cudadevrt."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `arch` is 90 for compute_90 or sm_90, `options` are the assembler's for PTX."""

    kind: int
    arch: int
    data: bytes
    options: str = ""


def read_images(data: bytes) -> Iterator[list[Entry]]:
    """Yield the entries of each image; CutraceError for what is none."""
    at = 0
    while at < len(data):
        magic, _, head, size = _HEAD.unpack_from(data, at)
        if magic != MAGIC:
            raise CutraceError("the program's device code has a format that cutrace does not know")
        yield list(_entries(data[at + head : at + head + size]))
        at += head + size


def _entries(data: bytes) -> Iterator[Entry]:
    at = 0
    while at + _ENTRY.size <= len(data):
        kind, _, head, size = _ENTRY.unpack_from(data, at)[:4]
        (arch,) = struct.unpack_from("<I", data, at + 28)
        (flags,) = struct.unpack_from("<Q", data, at + 40)
        (packed,) = struct.unpack_from("<I", data, at + 16)
        (whole,) = struct.unpack_from("<Q", data, at + 56) if head >= 64 else (0,)
        body = data[at + head : at + head + size]
        if kind == PTX:
            body = _unpacked(body, flags, packed, whole)
        yield Entry(kind, arch, body, _options(data[at : at + head]) if kind == PTX else "")
        at += head + size


def _options(head: bytes) -> str:
    """What an entry's head says at the place that it names: where a text is, and how long."""
    (place,) = struct.unpack_from("<I", head, 20)
    if not place or place + 8 > len(head):
        return ""
    start, size = struct.unpack_from("<II", head, place)
    return head[start : start + size].rstrip(b"\0").decode("ascii", "replace")


def _unpacked(body: bytes, flags: int, packed: int, whole: int) -> bytes:
    if flags & _ZSTD:
        return bytes(pa.decompress(body[:packed], whole, "zstd", asbytes=True))
    if flags & _LZ4:
        return bytes(pa.decompress(body[:packed], whole, "lz4_raw", asbytes=True))
    return body


def read_ptx(data: bytes, capability: int) -> list[str]:
    """The PTX of a module as a program hands it over: texts as they are, or images with a choice.

    CutraceError for machine code.
    """
    if data.startswith(b"\x7fELF"):
        raise CutraceError(
            "a module has machine code alone (a cubin), no PTX: have it compiled to PTX, with "
            "-arch=compute_90 in place of -arch=sm_90 or -cubin"
        )
    if data.startswith(struct.pack("<I", BUNDLE_MAGIC)):
        return [text for piece in _pieces(data) for text in read_ptx(piece, capability)]
    if data.startswith(struct.pack("<I", MAGIC)):
        return choose_ptx(list(read_images(data)), capability)
    return [_text(data)]


def read_options(data: bytes, capability: int) -> tuple[str, ...]:
    """The assembler's options of a module's PTX that move registers, as nvcc wrote them.

    >>> read_options(b"// PTX as text", 90)
    ()
    """
    if not data.startswith(struct.pack("<I", MAGIC)):
        return ()
    for image in read_images(data):
        chosen = _chosen([entry for entry in image if entry.kind == PTX], capability)
        if chosen and _DEVICE_RUNTIME not in _text(chosen.data):
            return tuple(w for w in chosen.options.split() if _MOVES_REGISTERS.match(w))
    return ()


def _pieces(data: bytes) -> Iterator[bytes]:
    at = _BUNDLE_HEAD.size
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 8 : at + 8 + size]
        at += 8 + size


def choose_ptx(images: list[list[Entry]], capability: int) -> list[str]:
    """The PTX of each image, for a device of this capability.

    nvcc links its library for launches by kernels to what is compiled with -rdc=true; its calls are
    ours, so it is left out. CutraceError where there is machine code only.
    """
    found = [text for image in images if (text := _choose(image, capability))]
    if not found:
        archs = {e.arch for image in images for e in image if e.kind == MACHINE_CODE}
        known = ", ".join(f"sm_{arch}" for arch in sorted(archs)) or "none that is known"
        raise CutraceError(
            f"the program has machine code alone ({known}), no PTX: build "
            "it with `cutrace nvcc`, or with -gencode arch=compute_90,code=compute_90"
        )
    return found


def _choose(entries: list[Entry], capability: int) -> str:
    chosen = _chosen([entry for entry in entries if entry.kind == PTX], capability)
    text = _text(chosen.data) if chosen else ""
    return "" if _DEVICE_RUNTIME in text else text


def _chosen(entries: list[Entry], capability: int) -> Entry | None:
    """The newest that the device runs, of one architecture the most special; else the oldest.

    `sm_90a` runs on 9.0 alone, `sm_100f` on what has its major number and is not older.
    """
    if not entries:
        return None
    fitting = [entry for entry in entries if _runs(*_target(entry), capability)]
    return max(fitting, key=_rank) if fitting else min(entries, key=_rank)


def _rank(entry: Entry) -> tuple[int, int]:
    arch, suffix = _target(entry)
    return arch, ("", "f", "a").index(suffix)


def _target(entry: Entry) -> tuple[int, str]:
    """The number and suffix of what PTX is compiled for, which its head has without the suffix."""
    found = _TARGET.search(entry.data)
    return entry.arch, found[1].decode() if found else ""


def _runs(arch: int, suffix: str, capability: int) -> bool:
    if suffix == "f":
        return arch <= capability and arch // 10 == capability // 10
    return arch == capability if suffix else arch <= capability


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "replace")

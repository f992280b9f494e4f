"""Inputs for programs of public collections whose own are not in their repositories: small ones.

Written for yuhc/gpu-rodinia; the numbers are random, of one seed, and mean nothing.
"""

import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import isqrt
from pathlib import Path

NODES = 2048
SIDE = 64
"""Of a graph, and of a square grid."""


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of the inputs, and how many times larger than usual those that can be are."""

    folder: Path
    times: int = 1


def write_inputs(folder: Path, times: int = 1) -> None:
    """Write them all into a folder."""
    for name, make in INPUTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = make(random.Random(name), Place(folder, times))
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def _graph(dice: random.Random, place: Place) -> str:
    """bfs: nodes with first edge and degree, the source, edges with their costs."""
    count = NODES * place.times
    degrees = [dice.randint(1, 6) for _ in range(count)]
    first = accumulate(degrees[:-1], initial=0)
    edges = [f"{dice.randrange(count)} {dice.randint(1, 10)}" for _ in range(sum(degrees))]
    nodes = [f"{start} {count}" for start, count in zip(first, degrees, strict=True)]
    return _lines([str(count), *nodes, "", "0", "", str(len(edges)), *edges])


def _keys(dice: random.Random, place: Place) -> str:
    """b+tree: how many keys, and the keys."""
    count = 10_000
    return _lines([count, *range(1, count + 1)])


def _temperatures(dice: random.Random, place: Place) -> str:
    return _lines(f"{dice.uniform(320, 340):.6f}" for _ in range(8 * SIDE * SIDE * place.times))


def _powers(dice: random.Random, place: Place) -> str:
    return _lines(f"{dice.uniform(0, 0.001):.9f}" for _ in range(8 * SIDE * SIDE * place.times))


def _points(dice: random.Random, place: Place) -> str:
    """kmeans: a line has a number and the features of a point."""
    return _lines(
        f"{number} " + " ".join(f"{dice.uniform(0, 100):.3f}" for _ in range(8))
        for number in range(1024 * place.times)
    )


def _floats(dice: random.Random, place: Place) -> str:
    return _lines(f"{dice.random():.6f}" for _ in range(1 << 12))


def _storms(dice: random.Random, place: Place) -> str:
    """nn: records of 48 characters, latitude and longitude in fixed columns."""
    return _lines(
        f"1999  {dice.randint(1, 9)} 11 12  7 {'STORM':9} {dice.uniform(7, 69):5.1f}"
        f" {dice.uniform(0, 358):5.1f}  100  500"
        for _ in range(4096 * place.times)
    )


def _storm_list(dice: random.Random, place: Place) -> str:
    return f"{place.folder / 'storms.db'}\n"


def _mesh(dice: random.Random, place: Place) -> str:
    """cfd: cells of a plane; each has an area and four neighbours with the normals between them."""
    side = 24 * isqrt(place.times)
    lines: list[object] = [side * side]
    for cell in range(side * side):
        x, y = cell % side, cell // side
        lines.append("1.0")
        for step_x, step_y in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            inside = 0 <= x + step_x < side and 0 <= y + step_y < side
            neighbour = (y + step_y) * side + x + step_x + 1 if inside else -2
            lines.append(f"{neighbour} {step_x}.0 {step_y}.0 0.0")
    return _lines(lines)


def _bytes(dice: random.Random, place: Place) -> bytes:
    """huffman: symbols of unequal frequency."""
    return bytes(min(int(dice.expovariate(0.1)), 255) for _ in range(1 << 15))


def _picture(dice: random.Random, place: Place) -> bytes:
    """dwt2d: a picture of three channels, without a head."""
    return bytes(dice.randrange(256) for _ in range(3 * 128 * 128))


def _speckles(dice: random.Random, place: Place) -> str:
    """srad: a PGM file; three lines are skipped."""
    wide, high = 458, 502
    grey = (dice.randint(1, 255) for _ in range(wide * high))
    return _lines(["P2", f"{wide} {high}", 255, *grey])


def _query(dice: random.Random, place: Place) -> str:
    return _lines(line for number in range(64) for line in (f">{number}", _bases(dice, 25)))


def _reference(dice: random.Random, place: Place) -> str:
    return _lines([">reference", *(_bases(dice, 60) for _ in range(40))])


def _bases(dice: random.Random, count: int) -> str:
    return "".join(dice.choice("ACGT") for _ in range(count))


def _video(width: int, height: int) -> Callable[[random.Random, Place], bytes]:
    """An AVI file of four grey frames with a bright disk: no compression, a byte a pixel."""

    def make(dice: random.Random, place: Place) -> bytes:
        middle = (height // 2, width // 2)
        frame = bytes(
            200 if (y - middle[0]) ** 2 + (x - middle[1]) ** 2 < 100 else 60 + dice.randrange(9)
            for y in range(height)
            for x in range(width)
        )
        frames = 4 * [frame]
        main = struct.pack("<14I", 40_000, 0, 0, 16, len(frames), 0, 1, 0, width, height, *(0,) * 4)
        stream = struct.pack(
            "<4s4s10I4H", b"vids", b"Y800", 0, 0, 0, 1, 25, 0, len(frames), 0, 0, 0, *(0,) * 4
        )
        form = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, width * height, 0, 0, 0, 0)
        streams = _list(b"strl", _chunk(b"strh", stream), _chunk(b"strf", form))
        movie = _list(b"movi", *(_chunk(b"00db", each) for each in frames))
        places = [4 + number * (8 + len(frame)) for number in range(len(frames))]
        index = b"".join(struct.pack("<4sIII", b"00db", 16, at, len(frame)) for at in places)
        head = _list(b"hdrl", _chunk(b"avih", main), streams)
        return _chunk(b"RIFF", b"AVI " + head + movie + _chunk(b"idx1", index))

    return make


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _list(name: bytes, *chunks: bytes) -> bytes:
    return _chunk(b"LIST", name + b"".join(chunks))


def _lines(lines: Iterable[object]) -> str:
    return "".join(f"{line}\n" for line in lines)


INPUTS: dict[str, Callable[[random.Random, Place], str | bytes]] = {
    "graph.txt": _graph,
    "keys.txt": _keys,
    "commands.txt": lambda dice, place: "j 64 32\nk 128\n",
    "temperatures.txt": _temperatures,
    "powers.txt": _powers,
    "points.txt": _points,
    "floats.txt": _floats,
    "storms.db": _storms,
    "storms.txt": _storm_list,
    "mesh.txt": _mesh,
    "symbols.bin": _bytes,
    "data/dwt2d/picture.rgb": _picture,
    "data/srad/image.pgm": _speckles,
    "query.fa": _query,
    "reference.fa": _reference,
    "heart.avi": _video(744, 656),
    "GL/glew.h": lambda dice, place: "// included, and nothing of it used, by hybridsort\n",
    "cells.avi": _video(128, 480),
}

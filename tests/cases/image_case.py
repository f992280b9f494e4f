"""Instructions on textures and surfaces, to run on hardware and here: a case is one on one image.

Texels and coordinates are made from PCG64's raw words, so that only what hardware answered needs
to be kept: the results, and after stores the image. `$s0` of a case's text is the texture's
handle, `$s1` the surface's over the same memory, then come the coordinates.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from ptx.ptx_case import Case

Modes: TypeAlias = dict[str, Any]

LANES = 64
MODES = ("clamp", "border", "wrap", "mirror")
EXTENTS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2}


@dataclass(frozen=True)
class Image:
    """Memory for texels: `geometry` as in PTX, `shape` without channels, layers first."""

    geometry: str
    element: str = "f4"
    channels: int = 4

    @property
    def shape(self) -> tuple[int, ...]:
        """Odd sizes; cubes are six squares."""
        known = {"1d": (9,), "2d": (7, 9), "3d": (3, 5, 6), "a1d": (3, 9), "a2d": (3, 4, 5)}
        return known.get(self.geometry) or {"cube": (6, 8, 8), "acube": (12, 4, 4)}[self.geometry]

    @property
    def extent(self) -> tuple[int, ...]:
        """Sizes without layers, x first."""
        return self.shape[::-1][: EXTENTS[self.geometry]]

    @property
    def layers(self) -> int:
        """How many; 0 without."""
        return self.shape[0] if len(self.shape) > len(self.extent) else 0

    @property
    def texel_bytes(self) -> int:
        """All channels together."""
        return self.channels * np.dtype(self.element).itemsize

    @property
    def values(self) -> NDArray[Any]:
        """The texels, channels last: integers of the whole range, floats from -1 to 1."""
        dtype = np.dtype(f"<{self.element}")
        shape = (*self.shape, self.channels)
        units = _units(f"{self}", int(np.prod(shape))).reshape(shape)
        if dtype.kind == "f":
            return (2 * units - 1).astype(dtype)
        info = np.iinfo(dtype)
        return np.trunc(info.min + units * 2.0 ** (8 * dtype.itemsize)).astype(dtype)


@dataclass(frozen=True)
class ImageCase:
    """One instruction, `text`, with its operands `$s2`... as arrays of 32 or 64 bits."""

    text: str
    image: Image
    results: tuple[str, ...] = ()
    mode: str = "clamp"
    filter_mode: str = "point"
    normalized: bool = False
    read_mode: str = "element"
    operands: tuple[NDArray[Any], ...] = field(default=(), compare=False)
    writes: bool = False

    @property
    def name(self) -> str:
        """All of it in a word."""
        image = f"{self.image.element}x{self.image.channels}"
        coordinates = "normalized" if self.normalized else "texels"
        parts = (self.image.geometry, self.mode, self.filter_mode, coordinates, self.read_mode)
        return " ".join((self.text, image, *parts))

    @property
    def lanes(self) -> int:
        """Threads that it takes."""
        return len(self.operands[0]) if self.operands else 32

    @cached_property
    def case(self) -> Case:
        """The instruction as a kernel: handles first."""
        kinds = tuple(f"b{8 * each.dtype.itemsize}" for each in self.operands)
        return Case(self.name, self.text, self.results, ("b64", "b64", *kinds))


def _units(seed: str, count: int) -> NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    words = np.asarray(np.random.PCG64(crc32(seed.encode())).random_raw(count))
    return (words >> np.uint64(40)) / 2.0**24


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _places(image: Image, seed: str, normalized: bool) -> list[NDArray[Any]]:
    """Coordinates x, y, z around the image, a quarter of them on multiples of 1/4 texel."""
    places = []
    for axis, size in enumerate(image.extent):
        units = _units(f"{seed} {axis}", LANES)
        texels = (1.6 * units - 0.3) * size
        texels[::4] = np.floor(4 * texels[::4]) / 4
        places.append(_bits((texels / (size if normalized else 1)).astype(np.float32)))
    return places


def _layer(image: Image, seed: str) -> list[NDArray[Any]]:
    """Layers, some of them beyond the last."""
    if not image.layers:
        return []
    count = image.layers // (6 if image.geometry == "acube" else 1)
    return [np.floor(_units(f"{seed} layer", LANES) * (count + 2)).astype(np.uint32)]


def _directions(seed: str) -> list[NDArray[Any]]:
    """Directions from the centre of a cube, some of them along edges and corners."""
    axes = [2 * _units(f"{seed} {axis}", LANES) - 1 for axis in range(3)]
    ties = np.array([*itertools.product((-1, 1), repeat=3), *_edges()]).T
    for axis, tie in zip(axes, ties, strict=True):
        axis[: len(tie)] = tie
    return [_bits(axis.astype(np.float32)) for axis in axes]


def _edges() -> list[tuple[float, ...]]:
    found = []
    for first, second in itertools.combinations(range(3), 2):
        for signs in itertools.product((-1, 1), repeat=2):
            edge = [0.25, 0.25, 0.25]
            edge[first], edge[second] = signs
            found.append(tuple(edge))
    return found


def _address(image: Image, first: int = 2) -> str:
    """The coordinates of a texture or surface instruction, padded as PTX has it."""
    count = len(image.extent) + (image.layers > 0) + (image.geometry in ("cube", "acube"))
    count -= image.geometry == "cube"
    names = [f"$s{first + k}" for k in range(count)]
    names += [names[-1]] * (count == 3)
    return f"{{{', '.join(names)}}}"


def _sampled(
    opcode: str, image: Image, kind: str, coordinate: str = "f32", more: str = "", **modes: Any
) -> ImageCase:
    """A fetch by float coordinates, or by integer ones."""
    seed = f"{opcode} {image} {more} {sorted(modes.items())}"
    normalized = modes.get("normalized", False)
    cube = image.geometry in ("cube", "acube")
    places = _directions(seed) if cube else _places(image, seed, normalized)
    if coordinate == "s32":
        places = [_bits(np.floor(p.view(np.float32)).astype(np.int32)) for p in places]
    layer = [] if image.geometry == "cube" else _layer(image, seed)
    count = 2 if kind == "f16x2" else 4
    text = f"{opcode}.{image.geometry}.v{count}.{kind}.{coordinate} {_vector('d', 0, count)}, "
    text += f"[$s0, {_address(image)}]{more};"
    return ImageCase(text, image, (kind,) * count, operands=(*layer, *places), **modes)


def _type_of(element: str, read_mode: str) -> str:
    floats = element[0] == "f" or read_mode == "normalized_float"
    return "f32" if floats else {"u": "u32", "i": "s32"}[element[0]]


def _textures() -> Iterator[ImageCase]:
    """Forms of `tex` beyond those of texture_case.py."""
    for channels in (1, 2, 4):
        for element in ("f4", "u1", "i2", "i4", "f2"):
            image = Image("2d", element, channels)
            yield _sampled("tex", image, _type_of(element, "element"))
    for geometry in ("a1d", "a2d"):
        for filter_mode in ("point", "linear"):
            yield _sampled("tex", Image(geometry), "f32", filter_mode=filter_mode)
        yield _sampled("tex", Image(geometry, "u4", 1), "u32", "s32")
    for geometry in ("1d", "2d", "3d"):
        yield _sampled("tex", Image(geometry, "i4", 2), "s32", "s32")
    for kind in ("f16", "f16x2"):
        for element in ("f2", "f4", "u1"):
            read_mode = "normalized_float" if element == "u1" else "element"
            for filter_mode in ("point", "linear"):
                modes: Modes = {"filter_mode": filter_mode, "read_mode": read_mode}
                yield _sampled("tex", Image("2d", element), kind, **modes)
    yield _sampled("tex.base", Image("2d"), "f32", filter_mode="linear")
    for geometry in ("1d", "2d", "3d", "a2d"):
        for level in ("0f3F000000", "0f40400000", "0fBF800000"):
            image = Image(geometry, channels=1)
            yield _sampled("tex.level", image, "f32", more=f", {level}", filter_mode="linear")
    yield _sampled("tex.level", Image("2d"), "f32", "s32", ", 0")
    slope = "{0f3F800000, 0f40000000}"
    yield _sampled("tex.grad", Image("2d"), "f32", more=f", {slope}, {slope}", filter_mode="linear")


def _offsets() -> Iterator[ImageCase]:
    """Offsets of whole texels, in every address mode."""
    steps = {"1d": "{3}", "2d": "{-3, 2}", "3d": "{1, -2, 3, 0}", "a2d": "{2, -1}"}
    for geometry, offset in steps.items():
        for mode in MODES:
            for filter_mode, normalized in itertools.product(("point", "linear"), (False, True)):
                modes: Modes = {"mode": mode, "filter_mode": filter_mode, "normalized": normalized}
                image = Image(geometry, channels=1)
                yield _sampled("tex", image, "f32", more=f", {offset}", **modes)
    yield _sampled("tex", Image("2d"), "f32", "s32", ", {-3, 2}")
    yield _sampled("tex", Image("2d"), "f32", "s32", ", {-3, 2}", mode="border")


def _cubes() -> Iterator[ImageCase]:
    for geometry in ("cube", "acube"):
        for filter_mode in ("point", "linear"):
            yield _sampled("tex", Image(geometry), "f32", filter_mode=filter_mode, normalized=True)
        yield _sampled("tld4.r", Image(geometry), "f32", normalized=True)


def _gathers() -> Iterator[ImageCase]:
    """`tld4`: every component, every address mode, both filters."""
    for component in "rgba":
        for channels in (1, 2, 4):
            yield _sampled(f"tld4.{component}", Image("2d", "i4", channels), "s32")
    for mode in MODES:
        for filter_mode, normalized in itertools.product(("point", "linear"), (False, True)):
            modes: Modes = {"mode": mode, "filter_mode": filter_mode, "normalized": normalized}
            yield _sampled("tld4.g", Image("2d"), "f32", **modes)
            yield _sampled("tld4.r", Image("2d"), "f32", more=", {-3, 2}", **modes)
            yield _sampled("tld4.b", Image("a2d"), "f32", **modes)
    for element in ("u1", "i2", "u4"):
        yield _sampled("tld4.g", Image("2d", element), _type_of(element, "element"))
    for element in ("u1", "i1", "u2", "i2"):
        yield _sampled("tld4.a", Image("2d", element), "f32", read_mode="normalized_float")
    yield _sampled("tld4.r", Image("2d", "f2"), "f32")


TEXTURE_QUERIES = (
    *("width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords"),
    *("array_size", "num_mipmap_levels", "num_samples", "filter_mode", "addr_mode_0"),
    *("addr_mode_1", "addr_mode_2", "force_unnormalized_coords"),
)
SURFACE_QUERIES = (
    *("width", "height", "depth", "channel_data_type", "channel_order", "array_size"),
    "memory_layout",
)


def _queries() -> Iterator[ImageCase]:
    images = [Image(geometry) for geometry in EXTENTS]
    images += [Image("2d", element, 1) for element in ("u1", "i1", "u2", "i2", "u4", "i4", "f2")]
    images += [Image("2d", "u1", 2), Image("2d", "f4", 1)]
    for image in images:
        for query in TEXTURE_QUERIES:
            yield ImageCase(f"txq.{query}.b32 $d0, [$s0];", image, ("b32",), normalized=True)
        for query in SURFACE_QUERIES:
            yield ImageCase(f"suq.{query}.b32 $d0, [$s1];", image, ("b32",), normalized=True)
    for mode in MODES:
        for query in ("filter_mode", "addr_mode_0", "addr_mode_1", "normalized_coords"):
            text = f"txq.{query}.b32 $d0, [$s0];"
            yield ImageCase(text, Image("2d"), ("b32",), mode, "linear", mode != "clamp")
    for read_mode in ("element", "normalized_float"):
        text = "txq.channel_data_type.b32 $d0, [$s0];"
        yield ImageCase(text, Image("2d", "u1", 1), ("b32",), read_mode=read_mode)
    for what in ("texref", "surfref"):
        for source in ("$s0", "$s1"):
            yield ImageCase(f"istypep.{what} $d0, {source};", Image("2d"), ("pred",))
    yield ImageCase("txq.level.width.b32 $d0, [$s0], 0;", Image("2d"), ("b32",))
    yield ImageCase("txq.level.height.b32 $d0, [$s0], 1;", Image("2d"), ("b32",))


def _corners(image: Image, size: int, mode: str) -> list[NDArray[Any]]:
    """Places in and around an image that stay apart when they are clamped: x in bytes, y, z.

    Layers come first. `.trap` stays inside.
    """
    counts = [image.extent[0] * image.texel_bytes // size if size else image.extent[0]]
    axes = [_axis(count, mode) for count in (*counts, *image.extent[1:])]
    axes += [list(range(image.layers))] if image.layers else []
    chosen = np.array([*itertools.product(*axes[::-1])], np.int32)
    order = np.argsort(_units(f"{image} {size} {mode}", len(chosen)))
    places = list(chosen[np.sort(order[:LANES])].T[::-1].copy())
    places[0] *= max(size, 1)
    if image.layers:
        places = [places[-1], *places[:-1]]
    return [_bits(place) for place in places]


def _axis(count: int, mode: str) -> list[int]:
    """Indices of which no two are clamped to the same one."""
    return list(range(count)) if mode == "trap" else [-2, *range(1, count - 1), count + 1]


FORMS = (
    "b8",
    "b16",
    "b32",
    "b64",
    "v2.b8",
    "v2.b16",
    "v2.b32",
    "v2.b64",
    "v4.b8",
    "v4.b16",
    "v4.b32",
)


def _form(form: str) -> tuple[str, int]:
    """The type of an element, and how many."""
    count, _, kind = form.rpartition(".")
    return kind, int(count[1:] or 1)


def _vector(letter: str, first: int, count: int) -> str:
    names = ", ".join(f"${letter}{first + k}" for k in range(count))
    return f"{{{names}}}" if count > 1 else names


def _data(seed: str, kind: str, count: int, lanes: int) -> list[NDArray[Any]]:
    words = np.asarray(np.random.PCG64(crc32(seed.encode())).random_raw(lanes * count))
    size = max(int(kind[1:]) // 8, 2)
    return list(words.astype(f"u{size}").reshape(count, lanes))


def _surfaces() -> Iterator[ImageCase]:
    """Loads and stores of bytes, everywhere in and around surfaces."""
    geometries = ("1d", "2d", "3d", "a1d", "a2d")
    for geometry, mode in itertools.product(geometries, ("trap", "clamp", "zero")):
        forms = FORMS if geometry == "2d" else ("b32", "v2.b16")
        for form in forms:
            kind, count = _form(form)
            size = int(kind[1:]) // 8 * count
            for image in (Image(geometry), Image(geometry, "u1", 4)):
                if size > 4 and image.element == "u1":
                    continue
                places = _corners(image, size, mode)
                count_of_places = len(places)
                address = f"[$s1, {_address(image)}]"
                text = f"suld.b.{geometry}.{form}.{mode} {_vector('d', 0, count)}, {address};"
                stored = kind if kind != "b8" else "b16"
                yield ImageCase(text, image, (stored,) * count, operands=tuple(places))
                text = f"sust.b.{geometry}.{form}.{mode} {address}, "
                text += f"{_vector('s', 2 + count_of_places, count)};"
                data = _data(text, kind, count, len(places[0]))
                yield ImageCase(text, image, operands=(*places, *data), writes=True)


def _beyond_layers() -> Iterator[ImageCase]:
    for mode in ("clamp", "zero"):
        image = Image("a2d")
        x, y = (np.zeros(8, np.uint32) for _ in range(2))
        layer = _bits(np.array([0, 1, 2, 3, 4, 9, -1, -5], np.int32))
        text = f"suld.b.a2d.b32.{mode} $d0, [$s1, {_address(image)}];"
        yield ImageCase(text, image, ("b32",), operands=(layer, x, y), mode="border")


def _formatted() -> Iterator[ImageCase]:
    """`sust.p` into every format."""
    for element in ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4"):
        for channels in (1, 2, 4):
            image = Image("2d", element, channels)
            places = _corners(image, 0, "zero")
            count = len(places)
            text = f"sust.p.2d.v4.b32.zero [$s1, {_address(image)}], {_vector('s', 2 + count, 4)};"
            data = _numbers(text, element, len(places[0]))
            yield ImageCase(text, image, operands=(*places, *data), writes=True)
    for geometry, mode in itertools.product(("1d", "2d", "3d"), ("trap", "clamp")):
        image = Image(geometry)
        places = _corners(image, 0, mode)
        text = f"sust.p.{geometry}.v4.b32.{mode} [$s1, {_address(image)}], "
        text += f"{_vector('s', 2 + len(places), 4)};"
        data = _numbers(text, "f4", len(places[0]))
        yield ImageCase(text, image, operands=(*places, *data), writes=True)


def _numbers(seed: str, element: str, lanes: int) -> list[NDArray[Any]]:
    """Values for each channel: floats around one, integers in and out of the format's range."""
    units = _units(seed, 4 * lanes).reshape(4, lanes)
    if element[0] == "f":
        return [_bits((4 * row - 2).astype(np.float32)) for row in units]
    reach = np.where(np.arange(lanes) % 2, 2.0 ** (8 * int(element[1])), 2.0**32)
    return [((row - 0.5) * reach).astype(np.int64).astype(np.uint32) for row in units]


def _reductions() -> Iterator[ImageCase]:
    kinds = {
        **{"add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64")},
        **{"max": ("u32", "s32", "u64", "s64"), "and": ("b32",), "or": ("b32",)},
    }
    for operation, types in kinds.items():
        for kind, mode in itertools.product(types, ("trap", "clamp", "zero")):
            yield _reduction("b", operation, Image("2d", "u4", 4), kind, mode)
    for geometry in ("1d", "3d"):
        yield _reduction("b", "add", Image(geometry, "u4", 4), "u32", "zero")
    for operation, element in itertools.product(kinds, ("u4", "i4")):
        yield _reduction("p", operation, Image("2d", element, 1), "b32", "zero")
    for operation in ("min", "max"):
        yield _reduction("p", operation, Image("2d", "u4", 2), "b64", "zero")


def _reduction(way: str, operation: str, image: Image, kind: str, mode: str) -> ImageCase:
    size = int(kind[1:]) // 8
    places = _corners(image, size if way == "b" else 0, mode)
    text = f"sured.{way}.{operation}.{image.geometry}.{kind}.{mode} [$s1, {_address(image)}], "
    text += f"$s{2 + len(places)};"
    data = _data(text, kind, 1, len(places[0]))
    return ImageCase(text, image, operands=(*places, *data), writes=True)


def image_cases() -> Sequence[ImageCase]:
    """Every case, in order."""
    return [
        *_textures(), *_offsets(), *_cubes(), *_gathers(), *_queries(),
        *_surfaces(), *_beyond_layers(), *_formatted(), *_reductions(),
    ]  # fmt: skip

"""Run the cases of tests/cases/image_case.py on a GPU and keep what comes out.

`python scripts/capture/images.py [OUT.npz]` needs an NVIDIA driver and NumPy, and nothing of
cutrace. Of each case it keeps the name, the results' bytes, and the image's after stores. What the
driver refuses is listed and left out.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from driver import HEADER, Gpu, driver_version

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cases.image_case import Image, ImageCase, image_cases  # noqa: E402
from ptx.ptx_case import SCRATCH, kernel_text, stored_dtype  # noqa: E402

FORMATS = {"u1": 1, "u2": 2, "u4": 3, "i1": 8, "i2": 9, "i4": 10, "f2": 16, "f4": 32}
LAYERED, WRITABLE, CUBEMAP, GATHERED = 1, 2, 4, 8
ADDRESS = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
INTEGERS, NORMALIZED = 1, 2
HOST, ARRAY = 1, 3


class ArrayDescriptor(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        *[(name, ctypes.c_size_t) for name in ("width", "height", "depth")],
        *[(name, ctypes.c_int) for name in ("format", "channels", "flags")],
    )


class ResourceDescriptor(ctypes.Structure):
    """CUDA_RESOURCE_DESC of an array."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("array", ctypes.c_void_p),
        ("reserved", ctypes.c_int * 30),
        ("flags", ctypes.c_uint),
    )


class TextureDescriptor(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = (
        ("address", ctypes.c_int * 3),
        *[(name, ctypes.c_int) for name in ("filter", "flags", "anisotropy", "mipmap_filter")],
        ("levels", ctypes.c_float * 3),
        ("border", ctypes.c_float * 4),
        ("reserved", ctypes.c_int * 12),
    )


class Copy(ctypes.Structure):
    """CUDA_MEMCPY3D, version 2."""

    _fields_ = (
        *[(f"source_{name}", ctypes.c_size_t) for name in ("x", "y", "z", "level")],
        ("source_kind", ctypes.c_int),
        *[(f"source_{name}", ctypes.c_void_p) for name in ("host", "device", "array", "none")],
        *[(f"source_{name}", ctypes.c_size_t) for name in ("pitch", "height")],
        *[(f"to_{name}", ctypes.c_size_t) for name in ("x", "y", "z", "level")],
        ("to_kind", ctypes.c_int),
        *[(f"to_{name}", ctypes.c_void_p) for name in ("host", "device", "array", "none")],
        *[(f"to_{name}", ctypes.c_size_t) for name in ("pitch", "height")],
        *[(name, ctypes.c_size_t) for name in ("bytes", "rows", "slices")],
    )


def make_array(gpu: Gpu, image: Image) -> ctypes.c_void_p:
    """Make a CUDA array that textures and surfaces may lie over, with the image's texels."""
    flags = WRITABLE | (GATHERED if image.geometry == "2d" else 0)
    flags |= LAYERED if image.geometry.startswith("a") else 0
    flags |= CUBEMAP if "cube" in image.geometry else 0
    sizes = (*image.extent, 0, 0)[:3]
    if image.layers:
        sizes = (*(*image.extent, 0)[:2], image.layers)
    described = ArrayDescriptor(*sizes, FORMATS[image.element], image.channels, flags)
    array = ctypes.c_void_p()
    gpu("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(described))
    texels = np.ascontiguousarray(image.values)
    pitch = image.extent[0] * image.texel_bytes
    copy = Copy(source_kind=HOST, to_kind=ARRAY, source_pitch=pitch,
                source_height=rows_of(image), **size_of(image))  # fmt: skip
    copy.source_host, copy.to_array = texels.ctypes.data, array
    gpu("cuMemcpy3D_v2", ctypes.byref(copy))
    return array


def rows_of(image: Image) -> int:
    """Rows of a slice or layer."""
    return image.extent[1] if len(image.extent) > 1 else 1


def size_of(image: Image) -> dict[str, int]:
    """Bytes a row, rows, and slices or layers."""
    slices = image.layers or (image.extent[2] if len(image.extent) > 2 else 1)
    width = image.extent[0] * image.texel_bytes
    return {"bytes": width, "rows": rows_of(image), "slices": slices}


def read_array(gpu: Gpu, array: ctypes.c_void_p, image: Image) -> bytes:
    """Return the image's texels as they are now."""
    into = np.zeros_like(image.values)
    pitch = image.extent[0] * image.texel_bytes
    copy = Copy(source_kind=ARRAY, to_kind=HOST, to_pitch=pitch, to_height=rows_of(image),
                **size_of(image))  # fmt: skip
    copy.source_array, copy.to_host = array, into.ctypes.data
    gpu("cuMemcpy3D_v2", ctypes.byref(copy))
    return into.tobytes()


def make_handles(gpu: Gpu, case: ImageCase, array: ctypes.c_void_p) -> tuple[int, int]:
    """Make a texture object and a surface object over the array."""
    resource = ResourceDescriptor(array=array)
    integers = case.image.element[0] in "ui" and case.read_mode == "element"
    described = TextureDescriptor(
        (ctypes.c_int * 3)(*[ADDRESS[case.mode]] * 3),
        int(case.filter_mode == "linear"),
        INTEGERS * integers | NORMALIZED * case.normalized,
    )
    texture, surface = ctypes.c_uint64(), ctypes.c_uint64()
    gpu("cuTexObjectCreate", ctypes.byref(texture), ctypes.byref(resource),
        ctypes.byref(described), None)  # fmt: skip
    gpu("cuSurfObjectCreate", ctypes.byref(surface), ctypes.byref(resource))
    return texture.value, surface.value


def run(gpu: Gpu, module: ctypes.c_void_p, kernel: str, case: ImageCase) -> tuple[bytes, bytes]:
    """Run a case; return the bytes of its results, and of its image if it writes."""
    function = ctypes.c_void_p()
    gpu("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    array = make_array(gpu, case.image)
    texture, surface = make_handles(gpu, case, array)
    handles = [np.full(case.lanes, handle, np.uint64) for handle in (texture, surface)]
    pieces = [np.ascontiguousarray(each).tobytes() for each in (*handles, *case.operands)]
    sizes = [case.lanes * stored_dtype(kind).itemsize for kind in case.results]
    results = len(pieces)
    pieces += [bytes(size) for size in (*sizes, case.lanes * SCRATCH)]
    starts = np.cumsum([0, *(-(-len(piece) // 256) * 256 for piece in pieces)])
    data = b"".join(piece + bytes(-len(piece) % 256) for piece in pieces)
    gpu("cuMemcpyHtoD_v2", ctypes.c_uint64(gpu.memory), data, ctypes.c_size_t(len(data)))
    values = [ctypes.c_uint64(gpu.memory + int(start)) for start in starts[:-1]]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    gpu("cuLaunchKernel", function, 1, 1, 1, case.lanes, 1, 1, 0, None, pointers, None)
    gpu("cuCtxSynchronize")
    found = b"".join(
        gpu.read(int(start), size) for start, size in zip(starts[results:], sizes, strict=False)
    )
    after = read_array(gpu, array, case.image) if case.writes else b""
    gpu("cuTexObjectDestroy", ctypes.c_uint64(texture))
    gpu("cuSurfObjectDestroy", ctypes.c_uint64(surface))
    gpu("cuArrayDestroy", array)
    return found, after


def captured(gpu: Gpu, case: ImageCase) -> tuple[str, bytes, bytes] | None:
    """Return a case's name, results and image; say so if the driver refuses it."""
    try:
        module = gpu.load(HEADER + kernel_text(case.case, "case"))
        answer = run(gpu, module, "case", case)
    except OSError as refusal:
        print(f"refused: {case.name} ({refusal})", flush=True)
        gpu.start_over()
        return None
    gpu("cuModuleUnload", module)
    return case.name, *answer


def joined(pieces: Sequence[bytes]) -> dict[str, Any]:
    """Return bytes one after the other, and how many each has."""
    return {
        "bytes": np.frombuffer(b"".join(pieces), np.uint8),
        "sizes": np.array([len(piece) for piece in pieces], np.uint32),
    }


def main() -> None:
    """Write all results to the file that the first argument names."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/validate/images.npz")
    gpu = Gpu()
    cases = image_cases()
    found = [answer for case in cases if (answer := captured(gpu, case))]
    names, results, images = zip(*found, strict=True)
    columns = {
        **{f"results_{key}": value for key, value in joined(results).items()},
        **{f"image_{key}": value for key, value in joined(images).items()},
    }
    made_by = np.array([gpu.name, driver_version()])
    np.savez_compressed(out, case=np.array(names), made_by=made_by, **columns)
    print(f"{out}: {len(found)} of {len(cases)} cases, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""printf: every conversion as this machine's C library prints it."""

import ctypes
import io
import random
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import KernelFault

FORMATS = 10_000
VALUES = 256
"""Bytes of the values of one format."""

KERNEL = r"""
extern "C" __device__ int vprintf(const char *, const char *);
extern "C" __global__ void k(const char *forms, const int *starts, const char *values, int *counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    counts[i] = vprintf(forms + starts[i], values + 256 * i);
}
"""
PUT = """extern "C" __global__ void k(double x, long long n, int w) {{ printf({}); }}"""


class Written:
    """A random format, the values that it takes as a kernel packs them, and as C passes them."""

    def __init__(self, random: random.Random) -> None:
        self.random, self.form, self.packed = random, "", bytearray()
        self.passed: list[object] = []
        for _ in range(random.randint(1, 4)):
            self.form += random.choice(("", "x", " = ", "[", "%%"))
            self._convert()

    def _take(self, dtype: str, ctype: object, value: object) -> None:
        size = np.dtype(dtype).itemsize
        self.packed += bytes(-len(self.packed) % size) + np.array([value], dtype).tobytes()
        self.passed.append(ctype(value))  # type: ignore[operator]

    def _convert(self) -> None:
        choose = self.random.choice
        flags = "".join(choose("-+ #0") for _ in range(choose((0, 0, 1, 2))))
        width = choose(("", "", "1", "9", "30", "*"))
        precision = choose(("", "", ".", ".0", ".2", ".17", ".*"))
        for _ in range((width + precision).count("*")):
            value = choose((0, 1, 7, 20, -1, -8))
            self._take("i4", ctypes.c_int, value)
            if value < 0 and width == "*":  # older C libraries differ there, see below
                flags = flags.replace("0", "")
        size, kind = "", choose("diouxXcpeEfFgGaA")
        if kind in "diouxX":
            size = choose(("", "h", "hh", "l", "ll", "z", "j", "t"))
            bits = 32 if size in ("", "h", "hh") else 64
            value = choose((0, 1, 9, 255, 65537, 2**31, 2**bits - 1, self.random.getrandbits(bits)))
            self._take(f"u{bits // 8}", ctypes.c_uint if bits == 32 else ctypes.c_ulonglong, value)
        elif kind == "c":
            self._take("i4", ctypes.c_int, choose((65, 126, 0x141)))
        elif kind == "p":
            self._take("u8", ctypes.c_void_p, choose((0, 1, 2**40 + 3)))
        else:
            special = (0.0, -0.0, 0.5, 2.5, 1 / 3, 5e-324, 1e22, np.inf, -np.inf, np.nan)
            ordinary = self.random.uniform(-1, 1) * 10.0 ** self.random.randint(-12, 40)
            self._take("f8", ctypes.c_double, choose((*special, ordinary, round(ordinary, 2))))
        self.form += f"%{flags}{width}{precision}{size}{kind}"

    @property
    def expected(self) -> str:
        """What C prints of the whole format, all values passed at once."""
        text = ctypes.create_string_buffer(4096)
        snprintf = ctypes.CDLL(None).snprintf
        snprintf.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
        length = snprintf(text, len(text), self.form.encode(), *self.passed)
        return text.raw[:length].decode()


def test_ten_thousand_random_formats_are_printed_as_by_c(tmp_path: Path) -> None:
    generator = random.Random(9)
    written = [Written(generator) for _ in range(FORMATS)]
    forms = [f"{i} {w.form}\n\0".encode() for i, w in enumerate(written)]
    starts = np.cumsum([0, *map(len, forms[:-1])]).astype(np.int32)
    values = b"".join(bytes(w.packed).ljust(VALUES, b"\0") for w in written)
    output = io.StringIO()
    with cutrace.Session(tmp_path / "t.cutrace", output=output) as gpu:
        text, packed = (
            gpu.to_device(np.frombuffer(each, np.uint8)) for each in (b"".join(forms), values)
        )
        counts = gpu.to_device(np.zeros(FORMATS, np.int32))
        kernel = gpu.compile(KERNEL).get_function("k")
        kernel[FORMATS // 100, 100](text, gpu.to_device(starts), packed, counts)
        assert counts.copy_to_host().tolist() == [len(w.passed) for w in written]
    expected = [f"{i} {w.expected}" for i, w in enumerate(written)]
    assert output.getvalue().splitlines() == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            '"%.*f|%.*d|", -1, x, -7, w',
            "1.500000|2|",
        ),  # a negative precision is none (C11 7.21.6.1)
        ('"%*d|", -4, w', "2   |"),  # a negative width is `-` and its absolute value
        ('"%0*.1f|%+0*E|", -7, x, -14, x', "1.5    |+1.500000E+00 |"),  # and `-` turns `0` off
        ('"%.f|%d|", x, w', "2|2|"),  # `.` alone is a precision of zero
        ('"%hhx|%hd|", 65537, 65537', "1|1|"),  # cut to the type that the letters say
        ('"%lld|%zu|%d|", n, n, w', "1099511627776|1099511627776|2|"),
        ('"(%.0d)|%05.3d|", 0, w', "()|  002|"),  # zero in no digits; a precision turns `0` off
        ('"%#o|%#X|%+u|", 8, 255, 7', "010|0XFF|7|"),
        ('"%.1a|%a|%5%|", x, x', "0x1.8p+0|0x1.8p+0|%|"),
        ('"%s|%.2s|%7s|", "text", "text", "text"', "text|te|   text|"),
    ],
)
def test_a_conversion_is_printed_as_the_standard_says(
    tmp_path: Path, printed: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        gpu.compile(PUT.format(printed)).get_function("k")[1, 1](1.5, 2**40, 2)
    assert capsys.readouterr().out == expected


def test_a_string_that_lies_nowhere_is_a_fault(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        kernel = gpu.compile(PUT.format('"%s", (const char *)16')).get_function("k")
        with pytest.raises(KernelFault, match="a called function reads 0x10, where nothing"):
            kernel[1, 1](1.5, 2**40, 2)

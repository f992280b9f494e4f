"""Random formats of printf, as a CUDA program that prints each between its number's tags.

python printf_formats.py FILE.cu; nvcc -arch=sm_90 FILE.cu; ./a.out > tests/validate/printf.txt.
"""

import random
import sys
from pathlib import Path

FORMATS, PER_KERNEL = 640, 40
INTEGERS = (0, 1, -1, 2, 7, 9, 10, 255, 256, -128, 127, 128, 32767, 32768, 65535, 65537, -65537)
INTS = (*INTEGERS, 2**31 - 1, -(2**31), 123456789)
LONGS = (*INTS, 2**40 + 3, -(2**40), 2**63 - 1, -(2**63), 10**18)
ORDINARY = "0.0 -0.0 1.0 -1.0 0.5 2.5 3.5 1.0/3 123456.789 999999.5 1e-5 1e300 -1e-300 5e-324"
SPECIAL = "1.0/zero -1.0/zero zero/zero 0.1f 1e22 4294967296.0"
FLOATS = (*ORDINARY.split(), *SPECIAL.split())
STRINGS = ('""', '"a"', '"hello"', '"ten chars."', '"per%cent"', '"tab\\tend"', '"h\\303\\251"')


class Formats:
    """Draws formats, each with the arguments that it takes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def conversion(self) -> tuple[str, list[str]]:
        """Draw one conversion and its arguments."""
        choose = self._random.choice
        kind = choose("diouxXcspeEfFgGaAdiuxfg%")
        flags = "".join(choose("-+ #0") for _ in range(choose((0, 0, 0, 1, 1, 2, 3))))
        width = choose(("", "", "1", "5", "12", "30", "*"))
        arguments = [str(choose((0, 1, 5, 12, -1, -7, -20)))] if width == "*" else []
        precision = choose(("", "", "", ".", ".0", ".1", ".3", ".10", ".25"))
        text, size = f"%{flags}{width}{precision}", ""
        if kind == "%":  # nothing may stand before it: another is drawn in its place
            return ("%%", []) if choose((True, True, False)) else self.conversion()
        if kind in "diouxX":
            size = choose(("", "", "h", "l", "ll"))
            is_long = "l" in size
            value = choose(LONGS if is_long else INTS)
            number = f"{value}ll" if value > -(2**63) else "-9223372036854775807ll - 1"
            arguments.append(f"({'long long' if is_long else 'int'})({number})")
        elif kind == "c":
            arguments.append(str(choose((65, 48, 32, 122, 0x141, 10))))
        elif kind == "s":
            arguments.append(choose(STRINGS))
        elif kind == "p":
            arguments.append(f"(void *){choose((0, 16, 4096, 0x7F0012345678))}ull")
        else:
            size = choose(("", "", "", "l"))
            arguments.append(choose(FLOATS))
        return text + size + kind, arguments

    def format(self) -> tuple[str, list[str]]:
        """Draw a format of one to four conversions."""
        form, arguments = "", []
        for _ in range(self._random.choice((1, 1, 2, 3, 4))):
            form += self._random.choice(("", "", "x=", " ", "[", "]"))
            text, taken = self.conversion()
            form += text
            arguments += taken
        return form, arguments


def program(seed: int = 35) -> str:
    """Write the program."""
    formats, lines, launches = Formats(seed), ["#include <cstdio>"], []
    for first in range(0, FORMATS, PER_KERNEL):
        lines.append(f"__global__ void k{first}(double zero, int *counts) {{")
        for i in range(first, first + PER_KERNEL):
            form, arguments = formats.format()
            call = f"printf({', '.join((chr(34) + form + chr(34), *arguments))})"
            lines.append(f'  printf("<{i}>"); counts[{i}] = {call}; printf("</{i}>\\n");')
        lines.append("}")
        launches.append(f"  k{first}<<<1, 1>>>(0.0, counts); cudaDeviceSynchronize();")
    lines += (
        "int main() {",
        f"  int *counts; cudaMallocManaged(&counts, {FORMATS} * sizeof(int));",
        *launches,
        f'  for (int i = 0; i < {FORMATS}; i++) printf("%d\\n", counts[i]);',
        "}",
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(program())

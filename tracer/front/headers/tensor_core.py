"""`mma.h` in terms of `mma.sync`: what `nvcuda::wmma` offers, for programs that include the header.

The header lies in a wheel of its own, and the instructions that it is made of (`wmma.load` and so
on) leave to the chip which lane holds what. Here a fragment is made of the tiles of `mma.sync`,
whose layout is public (PTX ISA 9.7.14): 16 rows of one factor by 8 columns of the other, values
that lie side by side along the sum four bytes together. Loads and stores are those that ptxas 12.9
makes for 9.0, seen in its machine code: `ldmatrix` from shared memory; else words of four bytes,
transposed by `movmatrix` where 16-bit values lie the other way, bytes one by one; results by twos
where they lie side by side.

A factor's fragment is seen as `outer` by `sum`: rows of A, columns of B. Where M is 8 the product
is made transposed, B first. Sums are rounded as `mma.sync` rounds them, for 7.5 in two halves; of
tf32 in two halves for every device, as an H200 was found to do (tests/validate/test_matrices.py).
4-bit integers and bits have the tiles of 8 by 8 alone, a word a lane.
Left out: accumulators of another type than the result's.
"""

from pathlib import Path

NAME = "mma.h"
TENSOR_CORE = Path(__file__).with_name("mma.cuh").read_text("utf-8")

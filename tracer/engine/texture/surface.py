"""Surfaces: memory of texels that kernels write, and where its bytes lie.

A surface lies in a space of its own, row after row, each row from a multiple of 16 bytes on; how a
device arranges its texels is the replay's to know.
"""

from ....lazy_dataclass import dataclass

ROW_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Surface:
    """A surface: `extent` x first, `layers` 0 if it has none, `pitch` bytes from row to row.

    `address` is its first byte in the space of surfaces, `format` as the trace has it (`u8x4`).
    """

    name: str
    format: str
    extent: tuple[int, ...]
    layers: int
    texel_bytes: int
    address: int
    pitch: int

    @property
    def shape(self) -> tuple[int, bool]:
        """How many dimensions it has, layers apart, and whether it is layered."""
        return len(self.extent), self.layers > 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, without padding."""
        return self.extent[0] * self.texel_bytes

    @property
    def rows(self) -> int:
        """Rows of a slice or layer."""
        return self.extent[1] if len(self.extent) > 1 else 1

    @property
    def slices(self) -> int:
        """Slices or layers."""
        return self.layers or (self.extent[2] if len(self.extent) > 2 else 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, with padding."""
        return self.pitch * self.rows * self.slices

"""What crosses the link to the host, in closed form: lines in the host's memory."""

from cases.cache_kernel import record_lines_of_the_host
from cases.counter_cases import Case, Constants, Formula

LINES = {"blocks": 3, "loads": 5, "stores": 2, "local_loads": 0, "local_stores": 0, "rounds": 2}
MORE_LINES = LINES | {"blocks": 7, "loads": 11, "stores": 3}


def reads(c: Constants) -> int:
    """Sectors that each block's SM reads in L2, once for all rounds."""
    return 4 * c["blocks"] * c["loads"]


def writes(c: Constants) -> int:
    """Sectors that each block writes in L2, each round anew."""
    return 4 * c["blocks"] * c["rounds"] * c["stores"]


BYTES: dict[str, Formula] = {
    "host_bytes_read": lambda c: 32 * reads(c),  # L2 keeps nothing for the other blocks
    "host_bytes_written": lambda c: 32 * writes(c),
}
SECTORS = "lts__t_sectors_srcunit_tex_aperture_sysmem"
OF_NCU: dict[str, Formula] = {
    **BYTES,
    f"{SECTORS}_op_read.sum": reads,
    f"{SECTORS}_op_write.sum": writes,
    f"{SECTORS}.sum": lambda c: reads(c) + writes(c),
    "lts__d_sectors_fill_sysmem.sum": reads,
}
HOST = [
    Case(record_lines_of_the_host, "v100", LINES, MORE_LINES, OF_NCU),
    Case(record_lines_of_the_host, "h100", LINES, MORE_LINES, OF_NCU),  # joins them in no LRC
    Case(
        record_lines_of_the_host,
        "p100",
        LINES,
        MORE_LINES,
        {
            **BYTES,
            "sysmem_read_transactions": reads,
            "sysmem_read_bytes": lambda c: 32 * reads(c),
            "sysmem_write_transactions": writes,
            "sysmem_write_bytes": lambda c: 32 * writes(c),
        },
    ),
]

"""Advice over the whole gallery: the good launches are left alone, the bad ones' faults are found.

A launch that is in neither table has faults that are not what its family is about, or is not to be
run on the device.
"""

from importlib.resources import files
from io import StringIO
from pathlib import Path

import pytest

from cutrace.analyzer.advice.advise import advise
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
OLD, FERMI, NEW = ("8800gtx", "gtx280"), ("gtx580",), ("h200",)
ALL = (*OLD, *FERMI, *NEW)

GOOD: dict[str, dict[int, tuple[str, ...]]] = {
    "constant_table/constant_table.cu": {0: ALL},  # all lanes read one constant
    "divergence/by_warp.cu": {0: ("gtx280",)},  # elsewhere its renumbered stores lie apart
    "hello/hello.cu": {0: ALL},
    "histogram/histogram_dynamic.cu": {0: ALL},  # lanes of a bin meet as the data do
    "histogram/histogram_static.cu": {0: ALL},
    "load_patterns/load_pattern.cu": {0: ALL, 1: ("gtx280", *FERMI, *NEW), 4: (*FERMI, *NEW)},
    "matrix_product/product_tiled.cu": {0: NEW, 1: NEW},  # 16 and 4 blocks: most SMs are idle
    "pitched_rows/pitched_rows.py": {1: ALL},
    "ray_caster/ray_caster.py": {0: ("gtx280", *FERMI, *NEW), 1: ALL},
    "reduction/reduce3_sequential.cu": {0: ALL},
    "reduction/reduce4_first_add.cu": {0: ALL},
    "reduction/reduce5_last_warp.cu": {0: ALL},
    "reduction/reduce6_unrolled.cu": {0: ALL},
    "reduction/reduce7_many.cu": {0: ALL},
    "reverse_array/reverse_global.cu": {0: ("gtx280", *FERMI, *NEW)},
    "reverse_array/reverse_shared.cu": {0: ALL},
    "shared_banks/stride_read.cu": {0: ALL, 2: ALL, 5: ALL, 8: ALL},  # strides 1, 3, 9, 33
    "shifted_copy/offset_copy.cu": {0: ALL, 3: (*OLD, *NEW), 4: ALL},  # 0, 16 and 32 words
    "shifted_copy/stride_copy.cu": {0: ALL},
    "texture/address_modes.py": {0: ALL},
    "texture/gather.py": {0: ("gtx280", *FERMI, *NEW), 1: ALL},
    "texture/heat_step.py": {0: ALL},
    "texture/shift_texture.py": {0: ALL},
    "texture/table_lookup.py": {0: ALL},
    "transpose/transpose_padded.cu": {0: OLD, 1: (*FERMI, *NEW), 2: NEW},
    "variables/variables.cu": {0: NEW},  # one lane adds for all
}
"""Launches of which nothing is to be said, but that they are small (`small_grid`)."""

BAD: dict[str, dict[int, tuple[str, tuple[str, ...]]]] = {
    "bitonic_sort/bitonic_sort.cu": {0: ("divergence", ALL)},  # half of the threads work
    "constant_table/constant_table.cu": {1: ("divergent_constant", ALL)},
    "divergence/by_thread.cu": {0: ("divergence", ALL)},
    "divergence/ways_by_thread.cu": {0: ("divergence", ALL)},
    "load_patterns/load_pattern.cu": {2: ("misaligned", ALL), 3: ("uncoalesced", ALL)},
    "local_array/local_array.cu": {0: ("local_array", ALL)},
    "matrix_product/product_plain.cu": {0: ("uncoalesced", ("8800gtx",))},
    "matrix_product/product_tiled.cu": {0: ("register_tile", ("8800gtx",))},
    "occupancy/occupancy.cu": {0: ("padding_lanes", ALL)},  # 100 threads
    "pitched_rows/pitched_rows.py": {0: ("misaligned", (*OLD, *FERMI))},
    "pyramid/pyramid_max.cu": {0: ("uncoalesced", (*FERMI, *NEW))},  # every second word
    "ray_caster/ray_caster.py": {0: ("uncoalesced", ("8800gtx",))},
    "reduction/reduce1_divergent.cu": {0: ("divergence", ALL)},
    "reduction/reduce2_strided.cu": {0: ("bank_conflicts", ALL)},
    "reverse_array/reverse_global.cu": {0: ("uncoalesced", ("8800gtx",))},
    "shared_banks/stride_read.cu": {
        launch: ("bank_conflicts", ALL) for launch in (1, 3, 4, 6, 7)
    },  # strides 2, 4, 8, 16, 32
    "shifted_copy/offset_copy.cu": {1: ("misaligned", ALL), 3: ("misaligned", FERMI)},
    "shifted_copy/stride_copy.cu": {launch: ("uncoalesced", ALL) for launch in (2, 3, 4)},
    "texture/gather.py": {0: ("texture", ("8800gtx",))},
    "thread_number/thread_number.cu": {0: ("padding_lanes", (*FERMI, *NEW))},  # 6 threads
    "transpose/transpose_naive.cu": {
        0: ("uncoalesced", ALL),
        1: ("uncoalesced", (*FERMI, *NEW)),
        2: ("uncoalesced", (*FERMI, *NEW)),
    },
    "transpose/transpose_shared.cu": {
        0: ("bank_conflicts", ALL),
        1: ("bank_conflicts", (*FERMI, *NEW)),
        2: ("bank_conflicts", (*FERMI, *NEW)),
    },
    "variables/variables.cu": {0: ("contention", (*OLD, *FERMI))},
}
"""Launches, the rule that must find the fault, and on which devices."""

PROVED = {
    "load_patterns/load_pattern.cu": "--align in=128+124: global_load_transactions from 5 to 4",
    "reduction/reduce2_strided.cu": "--pad part=32+1: shared_conflicts from 5,760 to 0",
    # 8 warps of 8 blocks for 4 tiles of 32 columns each take 31 passes too many
    "transpose/transpose_shared.cu": "--pad tile=1: shared_conflicts from 7,936 to 0",
    # 512 warps read 5 sectors, or 4
    "shifted_copy/offset_copy.cu": (
        "--align in=128+124: global_load_transactions from 2,560 to 2,048"
    ),
}
"""What the replay of the advised change gives on an h200."""


@pytest.mark.parametrize("source", sorted({*GOOD, *BAD}))
def test_good_launches_are_left_alone_and_faults_are_found(source: str, tmp_path: Path) -> None:
    path = record(GALLERY / source, [], tmp_path / "t.cutrace", output=StringIO())
    trace = read_trace(path)
    told = {
        (launch.number, launch.device): [f for f in findings if f.rule != "small_grid"]
        for launch, findings in advise(trace, analyze(trace, ALL))
    }
    for number, devices in GOOD.get(source, {}).items():
        for device in devices:
            if (number, device) in told:
                assert told[number, device] == [], (number, device)
    for number, (rule, devices) in BAD.get(source, {}).items():
        for device in devices:
            if (number, device) in told:
                assert rule in {f.rule for f in told[number, device]}, (number, device)
    if source in PROVED:
        proofs = {f.proof for (_, device), fs in told.items() if device == "h200" for f in fs}
        assert PROVED[source] in proofs


def test_every_family_of_the_gallery_is_in_the_tables() -> None:
    families = {path.parent.name for path in GALLERY.glob("*/why.md")}
    assert {source.partition("/")[0] for source in {*GOOD, *BAD}} == families

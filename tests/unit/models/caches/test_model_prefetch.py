"""Stream buffers beside arithmetic: which reads they have, and what they fetch ahead."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from cases.cache_case import LOAD, STORE, batch_of

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.jit.loop import rows_asked
from cutrace.models.prefetch import Prefetch
from cutrace.models.replay.device.conformance import check_model
from cutrace.models.replay.interface.model import Step
from cutrace.models.replay.stateful import stream_buffers

FAR = 1 << 20


def read(prefetch: Prefetch, addresses: Sequence[int]) -> Step:
    return prefetch.step(batch_of([(LOAD, address) for address in addresses]))


def totals(prefetch: Prefetch, addresses: Sequence[int]) -> tuple[int, ...]:
    """Reads, hits and prefetches."""
    counts = read(prefetch, addresses).counts
    return tuple(int(counts[name].sum()) for name in prefetch.counters)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_all_but_the_first_read_of_a_stream_are_hits(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 lines of a page of 32: the first is missed, and 4 are fetched behind the last."""
    if is_compiled:
        monkeypatch.setitem(rows_asked, stream_buffers.__name__, 1 << 14)
    assert totals(Prefetch(1), [128 * n for n in range(20)]) == (20, 19, 19 + 4)


def test_what_is_fetched_ahead_goes_on_as_loads_of_blocks() -> None:
    step = read(Prefetch(1, depth=2), [0, 128])
    assert step.out is not None
    widths = [step.out.kinds[kind].width for kind in step.out.kind.tolist()]
    assert step.out.addresses[:, 0].tolist() == [0, 128, 256, 384]  # the miss, two ahead, one more
    assert widths == [32, 128, 128, 128]
    assert step.out.row.tolist() == [0, 0, 0, 1]


def test_a_stream_ends_with_its_page() -> None:
    """4 pages of 8 lines: one miss each, and the 7 lines behind it."""
    prefetch = Prefetch(1, depth=4, page=1024)
    assert totals(prefetch, [128 * n for n in range(32)]) == (32, 28, 28)


@pytest.mark.parametrize(("buffers", "hits"), [(0, 0), (1, 0), (2, 0), (3, 3 * 15), (4, 3 * 15)])
def test_as_many_streams_as_there_are_buffers_are_followed(buffers: int, hits: int) -> None:
    """Three arrays in turn, 16 lines each: too few buffers lose each stream before it goes on."""
    addresses = [array * FAR + 128 * n for n in range(16) for array in range(3)]
    assert totals(Prefetch(buffers), addresses)[1] == hits


def test_sectors_of_a_line_that_was_missed_are_fetched_one_by_one() -> None:
    """Lines: 4 sectors of the first are misses of one stream, all others hits. Sectors: 1 miss."""
    addresses = [32 * n for n in range(32)]
    assert totals(Prefetch(2), addresses) == (32, 28, 7 + 4)
    assert totals(Prefetch(2, block=32), addresses) == (32, 31, 31 + 4)


def test_a_stride_that_skips_blocks_is_followed_as_far_as_a_buffer_reaches() -> None:
    assert totals(Prefetch(1, depth=4, page=1 << 16), [512 * n for n in range(8)])[1] == 7
    assert totals(Prefetch(1, depth=4, page=1 << 16), [640 * n for n in range(8)])[1] == 0


def test_stores_pass_by() -> None:
    prefetch = Prefetch(1)
    step = prefetch.step(batch_of([(LOAD, 0), (STORE, 128), (LOAD, 128)]))
    assert step.counts["reads"].tolist() == [1, 0, 1]
    assert step.counts["read_hits"].tolist() == [0, 0, 1]


def test_the_contract_is_kept() -> None:
    assert check_model(lambda: Prefetch(4), "prefetch", lanes=1) == []


@pytest.mark.parametrize("keys", [{"block": 100}, {"depth": -1}, {"page": 64}, {"buffers": -1}])
def test_buffers_that_there_cannot_be_are_refused(keys: dict[str, int]) -> None:
    with pytest.raises(CutraceError, match=r"prefetch: .*expected"):
        Prefetch(**({"buffers": 1} | keys))


THREE_ARRAYS = """\
// cutrace: three<<<1, 32>>>(o:f32[4096], a:f32[4096], b:f32[4096], c:f32[4096])
__global__ void three(float *o, const float *a, const float *b, const float *c)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < 4096; i += 32)
        o[i] = a[i] + b[i] + c[i];
}
"""
STREAM_BUFFERS = """\
name = "H100 with stream buffers"
base = "h100"

[stage.prefetch]
model = "prefetch"
from = ["l1"]
buffers = 4
block = 128

[stage.lrc]
from = ["prefetch"]
"""


def test_as_many_buffers_as_arrays_follow_them_as_jouppi_found(tmp_path: Path) -> None:
    (tmp_path / "three.cu").write_text(THREE_ARRAYS)
    (tmp_path / "buffers.toml").write_text(STREAM_BUFFERS)
    trace = cutrace.record(tmp_path / "three.cu", out=tmp_path / "three.cutrace")
    hits = {}
    for block in (128, 32):
        for buffers in range(5):
            values = {"prefetch.buffers": buffers, "prefetch.block": block}
            (launch,) = cutrace.analyze(trace, str(tmp_path / "buffers.toml"), set=values).launches
            hits[block, buffers] = int(launch.raw.counts["global_load_prefetch_read_hits"].sum())
    sectors = 3 * 128 * 4  # three arrays of 128 lines, each in five pages
    assert [hits[128, n] for n in (0, 1, 2)] == [0, 0, 0]  # each loses the stream of another
    assert hits[128, 3] == hits[128, 4] == sectors - 3 * 5 * 4  # all but a page's first line
    assert hits[32, 1] == sectors * 3 // 4  # a stream of sectors ends with its line
    assert hits[32, 3] == hits[32, 4] == sectors - 3 * 5  # all but a page's first sector

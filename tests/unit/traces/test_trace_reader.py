import random
import shutil
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hand_trace import Access, hand_trace, launch
from warps import BASE, FULL, warp

from cutrace.base.errors import CutraceError
from cutrace.traces import pattern_store, reader, table_file, table_reader
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import ACCESSES, PATTERNS, TABLES, Space
from cutrace.traces.verify import verify
from cutrace.traces.writer import TraceWriter


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two accesses of one warp, and what it ran: block 0 (a single instruction) twice."""
    accesses = [Access(warp(stride=4)), Access(warp(stride=8, lanes=[3, 5]), step=1)]
    path = [(0, FULL, 0, 0, 2)]
    return hand_trace(tmp_path / "x.cutrace", accesses, paths=[path], control=[(0, 0, 0, 0)])


def test_the_plain_table_has_32_addresses_a_row(trace: Trace) -> None:
    first, second = trace.launches[0].accesses().to_pylist()
    assert first["addresses"] == [BASE + 4 * lane for lane in range(32)]
    assert first["active"] == FULL
    # lanes 3 and 5 of stride 8: 3 * 8 = 24 and 5 * 8 = 40 bytes, the others are null
    assert {i: a for i, a in enumerate(second["addresses"]) if a is not None} == {
        3: BASE + 24,
        5: BASE + 40,
    }
    assert second["active"] == 0b101000


def test_an_address_of_zero_is_not_an_inactive_lane(tmp_path: Path) -> None:
    access = Access(warp(stride=4, base=0, lanes=[0, 1]), space=Space.SHARED)
    (row,) = hand_trace(tmp_path / "x.cutrace", [access]).launches[0].accesses().to_pylist()
    assert row["addresses"][:3] == [0, 4, None]


def test_offsets_may_be_negative_and_addresses_beyond_63_bits(tmp_path: Path) -> None:
    access = Access(warp(addresses=[2**63 + 100, 2**63 - 100]))
    (row,) = hand_trace(tmp_path / "x.cutrace", [access]).launches[0].accesses().to_pylist()
    assert row["addresses"][:2] == [2**63 + 100, 2**63 - 100]


def test_patterns_are_masks_and_offsets(trace: Trace) -> None:
    active, offsets = trace.launches[0].patterns()
    assert active.dtype == np.uint32
    assert offsets.dtype == np.int32
    assert active.tolist() == [FULL, 0b101000]
    assert offsets[0].tolist() == [4 * lane for lane in range(32)]
    assert np.flatnonzero(offsets[1]).tolist() == [5]  # lane 3 is the base, lane 5 at 40 - 24
    assert offsets[1, 5] == 16


def test_every_table_can_be_empty(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.cutrace") as writer, writer.launch(launch()):
        pass
    (empty,) = read_trace(tmp_path / "x.cutrace").launches
    assert [empty.count(name) for name in TABLES] == [0] * 7
    assert empty.patterns()[1].shape == (0, 32)
    assert empty.accesses().num_rows == 0
    assert empty.paths().num_rows == 0


def test_rows_are_counted_without_unpacking(trace: Trace) -> None:
    assert trace.launches[0].count("accesses") == 2
    assert trace.launches[0].count("control") == 1


def test_any_arrow_reader_opens_the_tables(trace: Trace) -> None:
    with pa.ipc.open_file(trace.path / "0" / "accesses.arrow") as file:
        table = file.read_all()
    assert table.schema == ACCESSES
    assert table["base"].to_pylist() == [BASE, BASE + 24]


def test_long_tables_are_read_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "HELD_BYTES", 0)
    accesses = [Access(warp(stride=4), step=step) for step in range(5)]
    (found,) = hand_trace(tmp_path / "x.cutrace", accesses).launches
    assert [batch.num_rows for batch in found.access_batches()] == [1] * 5


def test_batches_without_rows_of_the_blocks_that_are_asked_for_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "HELD_BYTES", 0)
    accesses = [Access(warp(stride=4), step=step, block=step % 3) for step in range(5)]
    (found,) = hand_trace(tmp_path / "x.cutrace", accesses, launch=launch(grid=(3, 1, 1))).launches
    batches = found.access_batches_of(np.array([0, 2]), ("block", "step"))
    assert [batch.to_pylist() for batch in batches] == [
        [{"block": 0, "step": 0}],
        [{"block": 2, "step": 2}],
        [{"block": 0, "step": 3}],
    ]
    assert found.accesses()["step"].to_pylist() == [0, 1, 2, 3, 4]


def test_patterns_are_found_in_their_record_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "HELD_BYTES", 0)
    accesses = [Access(warp(stride=stride)) for stride in range(1, 6)]
    store = hand_trace(tmp_path / "x.cutrace", accesses).launches[0].pattern_store()
    assert len(store) == 5
    active, offsets = store.take(np.array([4, 0, 4, 2]))
    assert active.tolist() == [FULL] * 4
    assert offsets[:, 31].tolist() == [31 * 5, 31 * 1, 31 * 5, 31 * 3]


def test_only_a_few_record_batches_of_a_dictionary_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "HELD_BYTES", 0)
    monkeypatch.setattr(pattern_store, "CACHED_BYTES", 3 * 132)  # a mask and 32 offsets of 4 bytes
    reads: list[int] = []
    read = table_reader.TableReader.read

    def counted(self: table_reader.TableReader, piece: table_reader.Piece) -> pa.RecordBatch:
        reads.append(piece.first)
        return read(self, piece)

    monkeypatch.setattr(table_reader.TableReader, "read", counted)
    accesses = [Access(warp(stride=stride)) for stride in range(1, 6)]
    store = hand_trace(tmp_path / "x.cutrace", accesses).launches[0].pattern_store()
    store.take(np.array([0, 1, 2]))
    store.take(np.array([0, 1, 2]))  # all three are kept
    assert reads == [0, 1, 2]
    store.take(np.array([3]))  # drops the one not used for longest: 0
    store.take(np.array([0, 2]))
    assert reads == [0, 1, 2, 3, 0]


def test_a_message_that_does_not_fit_its_file_is_refused(trace: Trace) -> None:
    path = trace.path / "0" / "accesses.arrow"
    data = bytearray(path.read_bytes())
    data[12:16] = struct.pack("<i", len(data))  # the header of the first message
    path.write_bytes(data)
    with pytest.raises(CutraceError, match=r"accesses\.arrow: damaged .* bytes at 16 in a file of"):
        read_trace(trace.path).launches[0].count("accesses")


def test_a_mistyped_path_names_the_three_nearest(trace: Trace) -> None:
    for name in ("naive.cutrace", "tiled.cutrace", "reverse.cutrace", "notes.txt"):
        (trace.path.parent / name).mkdir()
    with pytest.raises(CutraceError, match=r"no such trace; nearest: reverse\.cutrace, "):
        read_trace(trace.path.parent / "revers.cutrace")


def test_a_mistyped_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"no such trace, and there is no folder .*nowhere"):
        read_trace(tmp_path / "nowhere" / "x.cutrace")


def test_a_file_instead_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k() {}")
    with pytest.raises(CutraceError, match=r"k\.cu: a source, not a trace"):
        read_trace(tmp_path / "k.cu")


def test_another_folder_is_not_a_trace(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"not a trace: no manifest\.json in it"):
        read_trace(tmp_path)


def test_a_missing_table_is_named(trace: Trace) -> None:
    (trace.path / "0" / "paths.arrow").unlink()
    with pytest.raises(CutraceError, match=r"paths\.arrow: missing; the trace is not whole"):
        read_trace(trace.path)


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_a_truncated_table_is_named(trace: Trace, kept: int) -> None:
    path = trace.path / "0" / "accesses.arrow"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CutraceError, match=r"accesses\.arrow: (not an Arrow IPC file|truncated)"):
        read_trace(trace.path)


def test_a_truncated_manifest_is_named(trace: Trace) -> None:
    path = trace.path / "manifest.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CutraceError, match=r"manifest\.json: not JSON: .*is the trace whole"):
        read_trace(trace.path)


def test_a_huge_manifest_is_refused_unread(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MANIFEST_BYTES", 100)
    with pytest.raises(CutraceError, match=r"\d+ bytes; a manifest has 100 at most"):
        read_trace(trace.path)


@pytest.mark.parametrize("name", ["manifest.json", "0/accesses.arrow", "0"])
def test_a_link_out_of_the_trace_is_refused(trace: Trace, name: str) -> None:
    outside = trace.path.parent / "outside"
    (trace.path / name).rename(outside)
    (trace.path / name).symlink_to(outside)
    with pytest.raises(CutraceError, match="leads out of the trace"):
        read_trace(trace.path)


def _replace(trace: Trace, name: str, batch: pa.RecordBatch) -> None:
    path = trace.path / "0" / f"{name}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def test_a_table_with_other_columns_is_refused(trace: Trace) -> None:
    _replace(trace, "accesses", pa.RecordBatch.from_pydict({"address": [1]}))
    with pytest.raises(CutraceError, match=r"its columns are \['address'\], expected \['block'"):
        list(read_trace(trace.path).launches[0].access_batches())


def test_a_column_of_another_type_is_refused(trace: Trace) -> None:
    fields = [pa.field("active", pa.int64(), False), PATTERNS.field("offsets")]
    _replace(trace, "patterns", pa.RecordBatch.from_pylist([], pa.schema(fields)))
    with pytest.raises(CutraceError, match=r"its column is .*active: int64 not null.*, expected"):
        read_trace(trace.path).launches[0].patterns()


def test_a_null_that_the_schema_denies_is_refused(trace: Trace) -> None:
    lists = pa.array([[None] * 32], PATTERNS.field("offsets").type)
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.uint32()), lists], schema=PATTERNS)
    _replace(trace, "patterns", batch)
    with pytest.raises(CutraceError, match="nulls inside column `offsets`"):
        read_trace(trace.path).launches[0].patterns()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern": 2}, "column `pattern`: 2, but there are 2, counted from 0"),
        ({"pc": 1}, "column `pc`: 1, but there are 1, counted from 0"),
        ({"block": 1}, "column `block`: 1, but there are 1, counted from 0"),
        ({"warp": 1}, "column `warp`: 1, but there are 1, counted from 0"),
    ],
)
def test_an_identifier_out_of_range_is_refused(
    trace: Trace, changes: dict[str, int], message: str
) -> None:
    (batch,) = trace.launches[0].access_batches()
    row = batch.to_pylist()[0] | changes
    _replace(trace, "accesses", pa.RecordBatch.from_pylist([row], ACCESSES))
    with pytest.raises(CutraceError, match=message):
        list(read_trace(trace.path).launches[0].access_batches())


def test_a_declared_size_is_refused_before_memory_is_taken(trace: Trace) -> None:
    # an LZ4 frame begins with this magic number, and before it stands its unpacked size, int64
    path = trace.path / "0" / "accesses.arrow"
    data = bytearray(path.read_bytes())
    frame = data.index(b"\x04\x22\x4d\x18")
    data[frame - 8 : frame] = struct.pack("<q", 1 << 40)
    path.write_bytes(data)
    with pytest.raises(CutraceError, match=r"a record batch declares 10995\d+ bytes"):
        list(read_trace(trace.path).launches[0].access_batches())


@pytest.mark.slow
def test_damage_is_a_message_and_never_a_crash(trace: Trace) -> None:
    chance = random.Random(7)
    copy = trace.path.parent / "copy.cutrace"
    names = [path.relative_to(trace.path) for path in trace.path.rglob("*.*")]
    for _ in range(60):
        shutil.copytree(trace.path, copy)
        path = copy / chance.choice(sorted(names))
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        with suppress(CutraceError):
            for damaged in (found := read_trace(copy)).launches:
                verify(found)
                damaged.accesses()
        shutil.rmtree(copy)

"""A packed trace is read in its place, says what its folder says, and is believed no more."""

import json
import pickle
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.verify import verify

SCALE = "__global__ void scale(float *data) { data[threadIdx.x] *= 2; }"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A trace of four launches, two of them links, as a folder and as a file."""
    folder = tmp_path_factory.mktemp("packed")
    (folder / "scale.cu").write_text(SCALE)
    for name in ("a.cutrace", "a.cutrace.zip"):
        with cutrace.Session(folder / name) as gpu:
            kernel = gpu.compile(folder / "scale.cu").get_function("scale")
            data = gpu.device_array(64, "f4", "data")
            data.fill(0)
            for threads in (32, 32, 64, 32):
                kernel[1, threads](data)
    return folder / "a.cutrace", folder / "a.cutrace.zip"


def test_a_packed_trace_says_what_its_folder_says(both: tuple[Path, Path]) -> None:
    folder, packed = (cutrace.read_trace(path) for path in both)
    assert verify(packed) == []
    assert packed.manifest == folder.manifest
    for one, other in zip(packed.launches, folder.launches, strict=True):
        assert one.accesses().equals(other.accesses())
        assert one.place.name == other.place.name
    assert packed.launches[1].place == packed.launches[0].place
    assert pickle.loads(pickle.dumps(packed)).launches[3].count("accesses") == 2


VERBS = (
    ["analyze", "--all"],
    ["analyze", "--by", "line"],
    ["why"],
    ["advise"],
    ["export", "--to", "folded"],
    ["export", "--to", "requests"],
    ["occupancy"],
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_reads_a_packed_trace(
    both: tuple[Path, Path], verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for path in both:
        options = [] if verb[0] == "export" else ["--quiet"]
        assert run([verb[0], str(path), *verb[1:], *options, "-d", "h100"]) == 0
        said.append(capsys.readouterr().out.replace("a.cutrace.zip", "a.cutrace"))
    assert said[0] == said[1]


def test_the_same_rows_are_the_same_file(both: tuple[Path, Path], tmp_path: Path) -> None:
    again = tmp_path / "b.cutrace.zip"
    assert run(["export", str(both[0]), "--to", "zip", "-o", str(again)]) == 0
    assert again.read_bytes() == both[1].read_bytes()


@pytest.mark.skipif(not shutil.which("unzip"), reason="unzip is not installed")
def test_what_unzip_makes_of_it_is_the_folder(both: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "c.cutrace"
    subprocess.run(["unzip", "-q", str(both[1]), "-d", str(target)], check=True)
    assert verify(cutrace.read_trace(target)) == []
    assert (target / "1").is_symlink()


def test_links_are_small_members_and_tables_are_stored(both: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(both[1]) as file:
        members = {info.filename: info for info in file.infolist()}
        assert {info.compress_type for info in members.values()} == {zipfile.ZIP_STORED}
        assert stat.S_ISLNK(members["1"].external_attr >> 16)
        assert (file.read("1"), file.read("3")) == (b"0", b"0")
        assert json.loads(file.read("manifest.json"))["format_version"] == 1
        assert file.namelist()[0] == "manifest.json"


def test_a_file_that_is_no_trace_is_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "a.cutrace.zip"
    with zipfile.ZipFile(mine, "w") as file:
        file.writestr("diary.txt", "dear diary")
    with pytest.raises(CutraceError, match="no packed trace has this name"):
        hand_trace(mine, [Access(warp(stride=4))])
    with zipfile.ZipFile(mine) as file:
        assert file.namelist() == ["diary.txt"]


def broken(tmp_path: Path, source: Path, **changed: bytes) -> Path:
    """The archive with some members as they should not be."""
    target = tmp_path / "b.cutrace.zip"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            new.writestr(info, changed.pop(info.filename, old.read(info)))
        for name, data in changed.items():
            link = zipfile.ZipInfo(name)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            new.writestr(link, data)
    return target


def refusal(path: Path) -> str:
    def read() -> None:
        for launch in cutrace.read_trace(path).launches:
            launch.accesses()

    with pytest.raises(CutraceError) as caught:
        read()
    return str(caught.value)


def test_an_archive_that_is_cut_off_is_refused(both: tuple[Path, Path], tmp_path: Path) -> None:
    data = both[1].read_bytes()
    (tmp_path / "c.cutrace.zip").write_bytes(data[: len(data) // 2])
    assert "not a whole zip archive" in refusal(tmp_path / "c.cutrace.zip")
    (tmp_path / "d.cutrace.zip").write_bytes(b"")
    assert "not a whole zip archive" in refusal(tmp_path / "d.cutrace.zip")


def test_a_deflated_archive_is_refused_with_what_to_do(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "e.cutrace.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", (both[0] / "manifest.json").read_bytes())
    assert "unzip it and read the folder" in refusal(target)


@pytest.mark.parametrize("link", [b"/etc", b"..", b"../..", b""])
def test_a_link_out_of_the_archive_is_refused(
    both: tuple[Path, Path], tmp_path: Path, link: bytes
) -> None:
    assert "leads out of the trace; refused" in refusal(broken(tmp_path, both[1], **{"9": link}))


def test_a_member_with_a_name_outside_is_refused(both: tuple[Path, Path], tmp_path: Path) -> None:
    assert "outside of it; refused" in refusal(broken(tmp_path, both[1], **{"../x": b"0"}))


def test_a_table_in_an_archive_is_checked_like_any(both: tuple[Path, Path], tmp_path: Path) -> None:
    damaged = bytearray((both[0] / "0" / "accesses.arrow").read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    said = refusal(broken(tmp_path, both[1], **{"0/accesses.arrow": bytes(damaged)}))
    assert "b.cutrace.zip/0/accesses.arrow: damaged" in said
    short = refusal(broken(tmp_path, both[1], **{"0/accesses.arrow": b"ARROW1"}))
    assert "b.cutrace.zip/0/accesses.arrow" in short


def test_a_packed_trace_elsewhere_is_one_file_to_copy(both: tuple[Path, Path]) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe_file("/packed/a.cutrace.zip", both[1].read_bytes())
    trace = cutrace.read_trace("memory://packed/a.cutrace.zip")
    assert trace.manifest == cutrace.read_trace(both[0]).manifest
    assert verify(trace) == []

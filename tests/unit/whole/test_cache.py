"""What is kept between runs: found again, never believed when broken, never needed."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from cutrace.cache import keep, key_of, load
from cutrace.errors import CutraceError
from cutrace.strict_toml import read_toml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "cutrace" / "native"


def test_what_was_kept_is_found_again(folder: Path) -> None:
    key = key_of("processor", "text")
    assert load("native", key) is None
    keep("native", key, b"code")
    assert load("native", key) == b"code"
    assert [path.name for path in folder.iterdir()] == [key]


def test_another_text_or_processor_is_another_key() -> None:
    keys = {key_of("a", "b"), key_of("a", "c"), key_of("ab", ""), key_of("", "ab")}
    assert len(keys) == 4


@pytest.mark.parametrize("harm", [b"", b"x" * 10, b"x" * 100])
def test_a_broken_file_is_not_believed(folder: Path, harm: bytes) -> None:
    keep("native", "key", b"code")
    (folder / "key").write_bytes(harm)
    assert load("native", "key") is None
    whole = b"code" * 100
    keep("native", "key", whole)
    (folder / "key").write_bytes((folder / "key").read_bytes()[:-1])
    assert load("native", "key") is None


def test_where_nothing_can_be_written_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep("native", "key", b"code")
    assert load("native", "key") is None


def test_what_was_used_longest_ago_makes_room(folder: Path) -> None:
    for name, age in (("old", 3), ("used", 2), ("late", 1)):
        keep("native", name, bytes(60), most=300)  # 92 bytes a file, with its hash
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    assert load("native", "old") == bytes(60)  # which makes it the one used last
    keep("native", "new", bytes(60), most=300)
    assert {path.name for path in folder.iterdir()} == {"old", "late", "new"}
    keep("native", "large", bytes(400), most=300)
    assert load("native", "large") is None
    assert load("native", "new") == bytes(60)


def test_many_writers_leave_whole_files_within_the_bound(folder: Path) -> None:
    def write(number: int) -> None:
        keep("native", f"k{number % 5}", bytes([number % 5]) * 1000, most=4000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    left = [path.name for path in folder.iterdir()]
    assert 1 <= len(left) <= 3
    for name in left:
        assert load("native", name) == bytes([int(name[1:])]) * 1000


def test_toml_is_read_once_and_says_the_same(folder: Path) -> None:
    text = 'a = [1, 2.5, "x"]\n[b]\nc = true\nd = { e = -9007199254740993 }\n'
    wanted = {"a": [1, 2.5, "x"], "b": {"c": True, "d": {"e": -9007199254740993}}}
    assert read_toml(text, "") == read_toml(text.encode(), "") == wanted
    assert len(list(folder.with_name("toml").iterdir())) == 1
    assert read_toml("at = 2020-01-02", "") == {"at": date(2020, 1, 2)}
    with pytest.raises(CutraceError, match=r"^f\.toml: not TOML"):
        read_toml("a = ", "f.toml")

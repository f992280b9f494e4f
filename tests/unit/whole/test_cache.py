"""What is kept between runs: found again, never believed when broken, never needed."""

from pathlib import Path

import pytest

from cutrace.cache import keep, key_of, load


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

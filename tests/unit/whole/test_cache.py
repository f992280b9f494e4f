"""What is kept between runs: found again, never believed when broken, never needed."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Barrier

import pytest

from cutrace.base import cache, claim
from cutrace.base.cache import Cache, keep, kept_folder, key_of, load
from cutrace.base.config import read_toml
from cutrace.base.errors import CutraceError
from cutrace.jit import machine_code
from cutrace.tracer.session import resources


@pytest.fixture(autouse=True)
def as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was told, and no kernel of an earlier test is being assembled and kept."""
    if resources.assembler.cache_info().currsize:
        resources.assembler().shutdown()
        resources.assembler.cache_clear()
    monkeypatch.setattr(cache, "_REPORTED", set())


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the folder should be; it is told once."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for key in ("one", "other"):
        keep("native", key, b"code")
        assert load("native", key) is None
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith(f"cutrace: {tmp_path / 'file' / 'cutrace'}")
    assert "nothing can be kept between runs: Not a directory" in told
    assert "XDG_CACHE_HOME" in told


@pytest.mark.parametrize("what", ["pathlib.Path.open", "os.replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_or_read_only_folder_keeps_what_it_has(
    number: int,
    what: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Writing fails on the way, or the file cannot be put in its place: no piece of it is left."""
    keep("native", "old", b"code")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(folder / "tmpa1b2c3d4"))

    with monkeypatch.context() as patch:
        patch.setattr(what, refuse)
        for key in ("new", "old"):
            keep("native", key, b"other")
    assert load("native", "old") == b"code"
    assert [path.name for path in folder.iterdir()] == ["old"]
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"{folder}: nothing can be kept between runs: {os.strerror(number)}" in told


def test_a_broken_file_is_told_once_and_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("native", "key", b"code")
    (folder / "key").write_bytes(b"broken")
    assert load("native", "key") is load("native", "key") is None
    assert capsys.readouterr().err == (
        f"cutrace: {folder / 'key'}: broken; its content is made again\n"
    )
    keep("native", "key", b"code")
    assert load("native", "key") == b"code"


def test_two_versions_that_share_a_folder_do_not_see_each_others(folder: Path) -> None:
    """The source is part of the key: each finds its own, whoever wrote last."""
    ours, theirs = key_of("source of 1.0", "question"), key_of("source of 1.1", "question")
    keep("replays", ours, b"one", most=1000)
    keep("replays", theirs, b"other", most=1000)
    assert (load("replays", ours), load("replays", theirs)) == (b"one", b"other")


def test_what_was_used_longest_ago_makes_room(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "notes").write_bytes(bytes(1000))
    os.utime(folder / "notes", (0, 0))
    old, used, late, new, large = map(key_of, ("old", "used", "late", "new", "large"))
    for name, age in ((old, 3), (used, 2), (late, 1)):
        keep("native", name, bytes(60), most=300)  # 92 bytes a file, with its hash
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    assert load("native", old) == bytes(60)  # which makes it the one used last
    keep("native", new, bytes(60), most=300)
    assert {path.name for path in folder.iterdir()} == {old, late, new, "notes"}
    keep("native", large, bytes(400), most=300)
    assert load("native", large) is None
    assert load("native", new) == bytes(60)


def test_many_small_files_are_seldom_gone_through(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    make_room = cache._make_room

    def look(folder: Path, most: int) -> None:
        looks.append(folder)
        make_room(folder, most)

    monkeypatch.setattr(cache, "_make_room", look)
    for number in range(400):
        keep("native", key_of(f"{number}"), bytes(68), most=30_000)  # 100 bytes, with the hash
    assert len(looks) <= 1.5 * 400 / 16
    assert 270 <= len([*folder.iterdir()]) <= 1.1 * 300


def test_many_writers_leave_whole_files_within_the_bound(folder: Path) -> None:
    keys = [key_of(f"{number}") for number in range(5)]

    def write(number: int) -> None:
        keep("native", keys[number % 5], bytes([number % 5]) * 1000, most=4000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    left = [path.name for path in folder.iterdir()]
    assert 1 <= len(left) <= 3
    for name in left:
        assert load("native", name) == bytes([keys.index(name)]) * 1000


def test_toml_is_read_once_and_says_the_same(folder: Path) -> None:
    text = 'a = [1, 2.5, "x"]\n[b]\nc = true\nd = { e = -9007199254740993 }\n'
    wanted = {"a": [1, 2.5, "x"], "b": {"c": True, "d": {"e": -9007199254740993}}}
    assert read_toml(text, "") == read_toml(text.encode(), "") == wanted
    assert len(list(folder.with_name("toml").iterdir())) == 1
    assert read_toml("at = 2020-01-02", "") == {"at": date(2020, 1, 2)}
    with pytest.raises(CutraceError, match=r"^f\.toml: not TOML"):
        read_toml("a = ", "f.toml")


def test_machine_code_is_kept_within_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "define i64 @f{0}() {{\nret i64 {0}\n}}\n"
    machine_code.compile_assembly(text.format(5125))("f5125")
    assert len([*folder.iterdir()]) == 1
    monkeypatch.setattr(machine_code, "_CODE", replace(machine_code._CODE, most=1))
    machine_code.compile_assembly(text.format(5126))("f5126")
    assert len([*folder.iterdir()]) == 1


KEPT = Cache("native", 0, bytes, bytes)
GET = """
import sys, time
from pathlib import Path
from cutrace.base.cache import Cache

def make():
    with makes.open("a") as file:
        file.write("made\\n")
    while len([*begun.iterdir()]) < int(least):
        time.sleep(0.01)
    time.sleep(float(seconds))
    return b"code"

makes, begun, number, least, seconds = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
(begun / number).touch()
print(Cache("native", 0, bytes, bytes).get("key", make).decode())
"""
"""A process that says it has begun, and makes an entry when so many have."""
locked = pytest.mark.skipif(not claim.LOCKS, reason="files are not locked here")


def get_in_process(
    folder: Path, number: int, least: int, seconds: float
) -> "subprocess.Popen[str]":
    begun = folder.parents[1] / "begun"
    begun.mkdir(exist_ok=True)
    words = map(str, (makes_of(folder), begun, number, least, seconds))
    return subprocess.Popen(
        [sys.executable, "-c", GET, *words], stdout=subprocess.PIPE, text=True, env=os.environ
    )


def makes_of(folder: Path) -> Path:
    return folder.parents[1] / "makes"


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@locked
def test_of_many_processes_one_makes_an_entry(folder: Path) -> None:
    processes = [get_in_process(folder, number, 4, 0.3) for number in range(4)]
    assert [each.communicate(timeout=100)[0] for each in processes] == ["code\n"] * 4
    assert makes_of(folder).read_text() == "made\n"
    assert [path.name for path in folder.iterdir()] == ["key"]


@locked
def test_the_lock_of_a_killed_process_is_free(folder: Path) -> None:
    with get_in_process(folder, 0, 0, 600) as killed:
        wait_until(makes_of(folder).exists)
        with get_in_process(folder, 1, 0, 0) as other:
            wait_until((folder.parents[1] / "begun" / "1").exists)
            time.sleep(0.2)
            assert makes_of(folder).read_text() == "made\n"
            killed.kill()
            assert other.communicate(timeout=30)[0] == "code\n"
    assert makes_of(folder).read_text() == "made\n" * 2
    assert [path.name for path in folder.iterdir()] == ["key"]


@locked
def test_where_making_fails_the_next_one_makes(folder: Path) -> None:
    makes = []

    def make() -> bytes:
        makes.append(1)
        time.sleep(0.1)
        if len(makes) == 1:
            raise ValueError
        return b"code"

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(KEPT.get, "key", make) for _ in range(4)]
    assert sorted(repr(each.exception()) for each in answers) == ["None"] * 3 + ["ValueError()"]
    assert len(makes) == 2
    assert [path.name for path in folder.iterdir()] == ["key"]


@locked
def test_two_that_wait_for_each_other_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes one entry, for which it needs the other's."""
    monkeypatch.setattr(claim, "PATIENCE", 0.2)
    both = Barrier(2, timeout=60)

    def make(key: str, other: str) -> bytes:
        both.wait()
        assert KEPT.get(other, other.encode) == other.encode()
        return key.encode()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(KEPT.get, "a", lambda: make("a", "b"))
        assert KEPT.get("b", lambda: make("b", "a")) == b"b"
        assert first.result() == b"a"
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


@locked
@pytest.mark.parametrize("call", ["os.open", "fcntl.flock"])
def test_where_nothing_can_be_locked_an_entry_is_made_at_once(
    call: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is read-only, a file system without locks."""
    folder.mkdir(parents=True)
    makes = []

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS if call == "os.open" else errno.ENOLCK, "refused", str(folder))

    def make() -> bytes:
        makes.append(1)
        return b"code"

    monkeypatch.setattr(claim, "PATIENCE", 600)
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        assert KEPT.get("key", make) == b"code"
    assert len(makes) == 1


def test_a_folder_is_made_once(folder: Path) -> None:
    makes = []

    def make(into: Path) -> None:
        makes.append(into)
        time.sleep(0.2)
        (into / "file").write_text("text")

    with ThreadPoolExecutor(4) as pool:
        places = {*pool.map(lambda _: kept_folder("native", "key", make), range(4))}
    assert places == {folder / "key"}
    assert (folder / "key" / "file").read_text() == "text"
    assert len(makes) == 1
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_locks_of_killed_processes_make_room(folder: Path) -> None:
    folder.mkdir(parents=True)
    old, new = key_of("old"), key_of("new")
    (folder / f"{old}{claim.LOCK}").touch()
    os.utime(folder / f"{old}{claim.LOCK}", (0, 0))
    keep("native", old, bytes(60), most=100)
    keep("native", new, bytes(60), most=100)
    assert [path.name for path in folder.iterdir()] == [new]

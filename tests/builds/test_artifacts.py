"""Files by hash: published whole, fetched into a private cache, never run unverified."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from spsa.builds.artifacts import ArtifactStore, BuiltEngine, fetch, sha256_of, verify
from spsa.errors import TuningError

CONTENT = b"#!/bin/sh\necho uciok\n"
SHA = hashlib.sha256(CONTENT).hexdigest()
ONE, TWO = "a" * 64, "b" * 64


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "shared" / "engines")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_mismatch_names_both_hashes(binary, store, cache):
    assert sha256_of(binary) == verify(binary, SHA).sha256 == SHA
    for use in (
        lambda: verify(binary, TWO),
        lambda: store.put(binary, TWO),
        lambda: fetch(binary, TWO, cache),
        lambda: fetch(CONTENT, TWO, cache),
    ):
        named = f"({binary}|the stored binary) hashes to {SHA}, expected {TWO}"
        with pytest.raises(TuningError, match=named):
            use()
    assert not store.folder.exists() and names(cache) == set()


def test_what_cannot_be_read_is_named(store, cache, binary, monkeypatch):
    os.mkfifo(binary.with_name("pipe"))  # which does not block
    binary.with_name("link").symlink_to("/bin/true")
    monkeypatch.setattr("spsa.builds.artifacts.MAX_BYTES", len(CONTENT) - 1)
    for name, said in (
        ("gone", "cannot be read: No such file"),
        ("pipe", "not a regular file"),
        (".", "a directory"),
        ("link", "symbolic link"),
        ("engine", "more than"),
    ):
        for use in (store.put, lambda path: fetch(path, SHA, cache)):
            with pytest.raises(TuningError, match=said):
                use(binary.parent / name)
    with pytest.raises(TuningError, match="engine cannot be written: File exists"):
        ArtifactStore(binary).put(CONTENT)


def test_a_file_is_published_executable_and_never_written_into(binary, store):
    path = store.put(binary).path
    assert store.put(binary, SHA).path == path == store.folder / SHA
    assert (path.read_bytes(), mode(path)) == (CONTENT, 0o755)
    path.write_bytes(b"damaged")
    with path.open("rb") as running:
        assert store.get(SHA) is None
        assert store.put(binary).path.read_bytes() == CONTENT
        assert running.read() == b"damaged"
    assert names(store.folder) == {SHA}


def add(store: ArtifactStore, key: str, binary: Path, bench: int | None = None) -> BuiltEngine:
    return store.add(key, binary, "triple", "x86-64-v2", bench)


def test_an_engine_is_found_by_its_key_until_it_is_evicted(binary, store, tmp_path):
    (tmp_path / "other").write_bytes(b"other")
    one, other = add(store, ONE, binary, 7), add(store, TWO, tmp_path / "other")
    requires = ("x86-64-v2",)
    assert one == BuiltEngine(ONE, SHA, len(CONTENT), store.folder / SHA, "triple", 7, requires)
    assert store.find(ONE) == one
    assert mode(store.folder / f"{ONE}.json") == 0o644
    add(store, "c" * 64, binary)  # another key of the same bytes
    (store.folder / "notes").mkdir()
    store.evict([SHA, "d" * 64, "notes", "../engine"])
    assert names(store.folder) == {f"{TWO}.json", other.sha256, "notes"}
    assert store.find(ONE) is None and binary.exists()


@pytest.mark.parametrize("facts", ["", "[]", '{"sha256": 1, "requires": []}', None])
def test_an_index_that_is_wrong_finds_nothing(facts, binary, store):
    add(store, TWO, binary)
    index = store.folder / f"{ONE}.json"
    if facts is None:
        (store.folder / f"{TWO}.json").rename(index)
    else:
        index.write_text(facts)
    assert store.find(ONE) is None
    assert add(store, ONE, binary) == store.find(ONE)


def test_fetching_makes_a_private_executable(binary, cache):
    cache.mkdir(mode=0o755)
    for source in (binary, CONTENT):
        path = fetch(source, SHA, cache).path
        assert path == cache / SHA and path.read_bytes() == CONTENT
        assert (mode(cache), mode(path)) == (0o700, 0o700)
        inode = path.stat().st_ino
        assert fetch(Path("/gone"), SHA, cache).path.stat().st_ino == inode
        path.unlink()


def _await_another_time(path: Path, probe: Path) -> None:
    """Wait until a change has another time than the last one of this file: some systems count
    the times of files in steps of 10 ms."""
    while not probe.exists() or probe.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        probe.write_bytes(b"")


def _overwrite_and_put_the_clock_back(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"evil" + CONTENT[4:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


@pytest.mark.parametrize("touch", [_overwrite_and_put_the_clock_back, _link, Path.unlink])
def test_a_copy_that_was_touched_is_verified_again(touch, binary, cache, tmp_path):
    copy = fetch(binary, SHA, cache)
    assert copy.untouched
    _await_another_time(copy.path, tmp_path / "probe")
    touch(copy.path)
    assert not copy.untouched
    again = fetch(binary, SHA, cache).path
    assert again.read_bytes() == CONTENT and not again.is_symlink()


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to give files away")
def test_a_cache_of_another_user_is_refused(binary, cache):
    cache.mkdir()
    os.chown(cache, 12345, 12345)
    with pytest.raises(TuningError, match="belongs to user 12345"):
        fetch(binary, SHA, cache)

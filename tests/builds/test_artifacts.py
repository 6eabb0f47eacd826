"""Binaries by hash: published whole, fetched into a private cache, never run unverified."""

import hashlib
import os
import stat
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spsa.builds.artifacts import ArtifactStore, BuiltEngine, fetch, sha256_of, verify
from spsa.errors import ArtifactMismatch, TuningError

CONTENT = b"#!/bin/sh\necho uciok\n"
SHA = hashlib.sha256(CONTENT).hexdigest()
KEY = "a" * 64

as_root = pytest.mark.skipif(os.getuid() != 0, reason="takes root to give files away")


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_hash_is_that_of_the_bytes(binary: Path) -> None:
    assert sha256_of(binary) == SHA
    verify(binary, SHA)


def test_a_mismatch_names_both_hashes(binary: Path) -> None:
    with pytest.raises(ArtifactMismatch) as refusal:
        verify(binary, "0" * 64)
    assert SHA in str(refusal.value)
    assert "0" * 64 in str(refusal.value)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "engines")


def test_a_published_file_is_executable_and_alone(binary: Path, store: ArtifactStore) -> None:
    path = store.put(binary)
    assert store.put(binary, SHA) == path == store.folder / SHA
    assert (path.read_bytes(), mode(path)) == (CONTENT, 0o755)
    assert names(store.folder) == [SHA]
    with pytest.raises(ArtifactMismatch):
        store.put(b"other", SHA)


def test_publishing_never_writes_into_a_file_that_is_in_use(
    binary: Path, store: ArtifactStore
) -> None:
    path = store.put(binary)
    path.write_bytes(b"damaged")
    with path.open("rb") as running:
        assert store.get(SHA) is None
        assert store.put(binary).read_bytes() == CONTENT
        assert running.read() == b"damaged"


def test_what_cannot_be_published_is_named(tmp_path: Path, store: ArtifactStore) -> None:
    with pytest.raises(TuningError, match="nothing cannot be read"):
        store.put(tmp_path / "nothing")
    with pytest.raises(TuningError, match="no regular file"):
        store.put(tmp_path)


def add(store: ArtifactStore, key: str, binary: Path, bench: int | None = None) -> BuiltEngine:
    return store.add(key, binary, "triple", "x86-64-v2", lambda _: bench)


def test_an_engine_is_found_by_its_key_until_it_is_evicted(
    binary: Path, store: ArtifactStore, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(b"other")
    one, two = add(store, KEY, binary, 7), add(store, "b" * 64, tmp_path / "other")
    assert store.find(KEY) == one == BuiltEngine(
        KEY, SHA, len(CONTENT), store.folder / SHA, "triple", 7, ("x86-64-v2",)
    )  # fmt: skip
    (store.folder / "notes").mkdir()
    store.evict([SHA, "c" * 64, "notes", "../engine"])
    assert set(names(store.folder)) == {f"{two.build_key}.json", two.sha256, "notes"}
    assert store.find(KEY) is None and binary.exists()


def test_equal_engines_are_one_file_for_both_keys(binary: Path, store: ArtifactStore) -> None:
    add(store, KEY, binary)
    add(store, "b" * 64, binary)
    store.evict([SHA])
    assert names(store.folder) == []


def test_an_engine_that_fails_its_test_is_not_there(binary: Path, store: ArtifactStore) -> None:
    def fail(copy: Path) -> None:
        assert mode(copy) == 0o755 and copy.read_bytes() == CONTENT
        raise TuningError("no engine")

    with pytest.raises(TuningError, match="no engine"):
        store.add(KEY, binary, "triple", None, fail)
    assert names(store.folder) == []


@pytest.mark.parametrize("facts", ["", "[]", "{}", '{"sha256": 1, "requires": []}'])
def test_an_index_that_is_none_finds_nothing(
    facts: str, binary: Path, store: ArtifactStore
) -> None:
    add(store, KEY, binary)
    (store.folder / f"{KEY}.json").write_text(facts)
    assert store.find(KEY) is None
    assert add(store, KEY, binary) == store.find(KEY)


def test_an_index_of_another_key_is_not_believed(binary: Path, store: ArtifactStore) -> None:
    add(store, KEY, binary)
    (store.folder / f"{KEY}.json").rename(store.folder / f"{'b' * 64}.json")
    assert store.find("b" * 64) is None


def test_drafts_of_killed_processes_are_removed(binary: Path, store: ArtifactStore) -> None:
    store.put(binary)
    for name, age in (("old", 90_000), ("new", 1)):
        draft = store.folder / f".draft-{name}"
        draft.touch()
        os.utime(draft, (time.time() - age,) * 2)
    store.evict([])
    assert names(store.folder) == [".draft-new", SHA]


@pytest.mark.parametrize("kind", ["path", "bytes"])
def test_fetching_makes_a_private_executable(kind: str, binary: Path, cache: Path) -> None:
    path = fetch(binary if kind == "path" else CONTENT, SHA, cache).path
    assert path == cache / SHA
    assert path.read_bytes() == CONTENT
    assert (mode(cache), mode(path)) == (0o700, 0o700)


def test_what_is_cached_needs_no_source(binary: Path, cache: Path) -> None:
    first = fetch(binary, SHA, cache).path
    inode = first.stat().st_ino
    binary.unlink()
    assert fetch(binary, SHA, cache).path.stat().st_ino == inode


def test_other_bytes_are_refused_and_leave_nothing(binary: Path, cache: Path) -> None:
    with pytest.raises(ArtifactMismatch) as refusal:
        fetch(binary, "f" * 64, cache)
    assert str(binary) in str(refusal.value)
    assert SHA in str(refusal.value)
    assert "f" * 64 in str(refusal.value)
    assert names(cache) == []


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT + b"x"])
def test_a_damaged_copy_is_fetched_again(damage: bytes, binary: Path, cache: Path) -> None:
    fetch(binary, SHA, cache).path.write_bytes(damage)
    assert fetch(binary, SHA, cache).path.read_bytes() == CONTENT


def test_a_link_in_the_cache_is_replaced_not_followed(binary: Path, cache: Path) -> None:
    cached = fetch(binary, SHA, cache).path
    cached.unlink()
    cached.symlink_to(binary)
    assert not fetch(binary, SHA, cache).path.is_symlink()
    assert binary.read_bytes() == CONTENT


def test_a_link_is_no_source(binary: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(binary)
    with pytest.raises(TuningError, match="symbolic link"):
        fetch(tmp_path / "link", SHA, cache)


def test_a_missing_source_is_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="gone cannot be read: No such file"):
        fetch(tmp_path / "gone", SHA, cache)


def test_a_pipe_does_not_block(cache: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TuningError, match="no regular file"):
        fetch(tmp_path / "pipe", SHA, cache)


def test_others_are_shut_out_of_a_cache_that_was_open(binary: Path, cache: Path) -> None:
    cache.mkdir(mode=0o755)
    fetch(binary, SHA, cache)
    assert mode(cache) == 0o700


def test_a_cache_behind_a_link_is_refused(binary: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    cache.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TuningError, match="symbolic link"):
        fetch(binary, SHA, cache)


@pytest.mark.parametrize(
    ("permissions", "writer"),
    [(0o777, "every user"), (0o757, "every user"), (0o775, r"group \d+"), (0o2770, r"group \d+")],
)
@pytest.mark.parametrize("cache", ["cache", "made/cache"])
def test_a_cache_under_a_folder_that_others_can_write_is_refused(
    cache: str, permissions: int, writer: str, binary: Path, tmp_path: Path
) -> None:
    """A user who can rename the cache can replace it between the check and the use."""
    shared = tmp_path / "shared"
    (shared / "made").mkdir(parents=True)
    shared.chmod(permissions)
    with pytest.raises(TuningError, match=rf"{writer} may write .*shared .*chmod"):
        fetch(binary, SHA, shared / cache)
    shared.chmod(permissions | 0o1000)  # as /tmp is: only the owner of a file may rename it
    assert fetch(binary, SHA, shared / cache).path.read_bytes() == CONTENT


def test_folders_that_are_made_for_a_cache_are_private_under_any_umask(
    binary: Path, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        fetch(binary, SHA, tmp_path / "made" / "deeper" / "cache")
    finally:
        os.umask(before)
    assert mode(tmp_path / "made") == mode(tmp_path / "made" / "deeper") == 0o700


@as_root
@pytest.mark.parametrize("made", ["cache", "cache/deeper"])
def test_a_cache_that_somebody_else_could_swap_is_refused(
    made: str, binary: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    os.chown(tmp_path / "cache", 12345, 12345)
    with pytest.raises(TuningError, match="belongs to user 12345"):
        fetch(binary, SHA, tmp_path / made)


@as_root
def test_a_link_on_the_way_to_a_cache_leads_nowhere_foreign(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    with pytest.raises(TuningError, match="belongs to user 12345"):
        fetch(binary, SHA, tmp_path / "link" / "cache")


def _await_another_time(path: Path, probe: Path) -> None:
    """Wait until a change has another time than the last one of this file: some systems count
    the times of files in steps of 10 ms."""
    while not probe.exists() or probe.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        probe.write_bytes(b"")


def _overwrite(path: Path) -> None:
    path.write_bytes(b"evil" + CONTENT[4:])


def _overwrite_and_put_the_clock_back(path: Path) -> None:
    before = path.stat()
    _overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(path: Path) -> None:
    path.with_suffix(".evil").write_bytes(b"evil")
    path.with_suffix(".evil").replace(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/bin/true")


@pytest.mark.parametrize(
    "touch", [_overwrite, _overwrite_and_put_the_clock_back, _swap, _link, Path.unlink]
)
def test_a_copy_that_was_touched_is_verified_again(
    touch: Callable[[Path], None], binary: Path, cache: Path, tmp_path: Path
) -> None:
    copy = fetch(binary, SHA, cache)
    assert copy.untouched
    _await_another_time(copy.path, tmp_path / "probe")
    touch(copy.path)
    assert not copy.untouched
    assert fetch(binary, SHA, cache).path.read_bytes() == CONTENT


def test_a_source_without_end_does_not_fill_the_disk(
    binary: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spsa.builds.artifacts.MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(TuningError, match="is not copied"):
        fetch(binary, SHA, cache)
    assert names(cache) == []


def test_processes_share_a_cache(binary: Path, cache: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        copies = list(pool.map(fetch, [binary] * 12, [SHA] * 12, [cache] * 12))
    assert {copy.path for copy in copies} == {cache / SHA}
    assert names(cache) == [SHA]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=3000))
def test_any_bytes_come_through(content: bytes, tmp_path: Path) -> None:
    path = fetch(content, hashlib.sha256(content).hexdigest(), tmp_path / "any").path
    assert path.read_bytes() == content

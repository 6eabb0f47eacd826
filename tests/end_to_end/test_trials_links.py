"""Symbolic links that were planted where the tuner keeps its files are never followed.

Neither is what they lead to executed, nor is anything there overwritten or removed.
`test_artifacts` and `test_sandbox` have those of a worker's cache of engines.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spsa.builds.artifacts import ArtifactStore, BuiltEngine
from spsa.core.game_settings import Book
from spsa.openings.book import load


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """What belongs to others, and has to be afterwards what it is now."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "precious").write_text("as it was")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["precious"]
    assert (folder / "precious").read_text() == "as it was"


@pytest.mark.parametrize("planted", ["binary", "index"])
def test_in_the_place_of_a_published_engine(planted: str, theirs: Path, tmp_path: Path) -> None:
    store, key = ArtifactStore(tmp_path / "engines"), "0" * 64
    binary = Path(shutil.copy("/bin/true", tmp_path / "engine"))

    def add() -> BuiltEngine:
        return store.add(key, binary, "here", None, None)

    path = add().path if planted == "binary" else add().path.with_name(f"{key}.json")
    path.unlink()
    path.symlink_to(binary if planted == "binary" else theirs / "precious")
    assert store.find(key) is None
    add()
    assert not path.is_symlink() and store.find(key) is not None
    path.unlink()
    path.symlink_to(theirs / "precious")
    store.evict([store.put(binary).sha256])


def test_an_index_that_names_a_file_elsewhere(tmp_path: Path) -> None:
    store, key = ArtifactStore(tmp_path / "engines"), "0" * 64
    binary = Path(shutil.copy("/bin/true", tmp_path / "engine"))
    store.add(key, binary, "here", None, None)
    index = store.folder / f"{key}.json"
    fields = json.loads(index.read_text())
    for name in ("path", "sha256"):
        index.write_text(json.dumps(fields | {name: str(binary)}))
        found = store.find(key)
        assert found is None or found.path == store.folder / fields["sha256"]
    store.evict([str(binary), "../engine"])
    assert binary.exists()


@pytest.mark.parametrize("planted", ["books", "mark"])
def test_in_the_place_of_what_is_known_of_books(
    planted: str, theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    book = tmp_path / "book.epd"
    book.write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    digest = load(Book(name=str(book))).sha256
    known = tmp_path / "cache" / "spsa-tuner" / "books-2"
    assert [path.name for path in known.iterdir()] == [digest]
    (known / digest).unlink()
    if planted == "mark":
        (known / digest).symlink_to(theirs / "made")
    else:
        known.rmdir()
        known.symlink_to(theirs)
    assert load(Book(name=str(book))).sha256 == digest

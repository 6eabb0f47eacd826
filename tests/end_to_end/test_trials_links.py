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
from spsa.builds.source import Checkout, pin
from spsa.builds.subprocesses import Commands
from spsa.builds.tree import WorkCopy
from spsa.core.game_settings import Book
from spsa.errors import TuningError
from spsa.openings.book import load

CRATE = Path(__file__).parents[1] / "fixtures" / "crate"


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """What belongs to others, and has to be afterwards what it is now."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "precious").write_text("as it was")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["precious"]
    assert (folder / "precious").read_text() == "as it was"


def through_outages(seconds: float) -> None: ...


@pytest.mark.parametrize("name", [".", "tree", "lock", "draft", "unfinished", "target-0"])
def test_in_a_private_work_tree(name: str, theirs: Path, tmp_path: Path) -> None:
    side = WorkCopy(tmp_path / "work" / "plus")
    planted = side.home / name
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(theirs if name in (".", "tree", "target-0") else theirs / "precious")
    source = Checkout(CRATE).tree()
    with side.locked(through_outages, 60):
        side.lay_out(source)
        with side.compiling() as target:
            target.mkdir(exist_ok=True)
            (target / "engine").write_text("compiled")
    assert (side.tree / "Cargo.toml").is_file()
    assert not any(path.is_symlink() for path in side.home.iterdir())


@pytest.mark.parametrize("name", ["stdout.log", "stderr.log"])
def test_in_the_place_of_what_cargo_said(name: str, theirs: Path, tmp_path: Path) -> None:
    logs = tmp_path / "log"
    logs.mkdir()
    (logs / name).symlink_to(theirs / "precious")
    done = Commands({}).run(["/bin/sh", "-c", "echo out; echo err >&2"], tmp_path, logs, 60.0)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_in_the_place_of_the_pinned_source(theirs: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    pinned = pin(CRATE, work)
    pinned.path.rename(tmp_path / "moved")
    pinned.path.symlink_to(tmp_path / "moved")
    with pytest.raises(TuningError, match="is a symbolic link: delete it"):
        pin(CRATE, work)
    shutil.rmtree(tmp_path / "moved")


@pytest.mark.parametrize("planted", ["binary", "index"])
def test_in_the_place_of_a_published_engine(planted: str, theirs: Path, tmp_path: Path) -> None:
    store, key = ArtifactStore(tmp_path / "engines"), "0" * 64
    binary = Path(shutil.copy("/bin/true", tmp_path / "engine"))

    def add() -> BuiltEngine:
        return store.add(key, binary, "here", None, lambda path: None)

    path = add().path if planted == "binary" else add().path.with_name(f"{key}.json")
    path.unlink()
    path.symlink_to(binary if planted == "binary" else theirs / "precious")
    assert store.find(key) is None
    add()
    assert not path.is_symlink() and store.find(key) is not None
    path.unlink()
    path.symlink_to(theirs / "precious")
    store.evict([store.put(binary).name])


def test_an_index_that_names_a_file_elsewhere(tmp_path: Path) -> None:
    store, key = ArtifactStore(tmp_path / "engines"), "0" * 64
    binary = Path(shutil.copy("/bin/true", tmp_path / "engine"))
    store.add(key, binary, "here", None, lambda path: None)
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

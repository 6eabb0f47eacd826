"""What of a checkout is taken along, pinned, laid out; all without a compiler."""

import gzip
import os
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.builds.builder import archive_of
from spsa.builds.tree import (
    Checkout,
    Tree,
    TreeEntry,
    WorkCopy,
    archived,
    differences,
    pin,
    tree_at,
    unpack,
)
from spsa.errors import InvalidInput, TuningError

CRATE = Path(__file__).parents[1] / "fixtures" / "crate"
ENGINE = {".cargo/config.toml", "Cargo.lock", "Cargo.toml", "src/constants.rs", "src/main.rs"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CRATE, tmp_path / "engine"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_copy_has_all_files_but_junk_and_what_is_excluded(tmp_path):
    def shown(files):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name, text in files.items():
            write(folder / name, text)
        for cargo in (True, False):
            checkout = Checkout(folder, frozenset([folder / "params.toml"]), cargo)
            yield f"{'with' if cargo else 'without'} cargo: {' '.join(sorted(checkout.tree()))}"

    compare_cases(Path(__file__).with_name("copied.txt"), shown)


def test_the_hash_is_of_names_modes_and_bytes_not_of_dates(source, work):
    file = source / "src" / "main.rs"
    seen = [pin(source, work).sha256]
    assert seen == ["e6dc388387545b2f15dda91940127bdb403c333dbaf9329a8f59caad7c1dd371"], (
        "as of old runs"
    )
    os.utime(file, (1, 1))
    file.chmod(0o645)  # its owner cannot run it
    assert pin(source, work).sha256 == seen[0]
    file.chmod(0o755)
    seen.append(pin(source, work).sha256)
    file.write_text(file.read_text() + "\n")
    seen.append(pin(source, work).sha256)
    file.rename(source / "src" / "other.rs")
    seen.append(pin(source, work).sha256)
    assert len(set(seen)) == 4


def test_a_source_that_cannot_be_built_alone_is_refused(source, work):
    with pytest.raises(InvalidInput, match=r"no Cargo\.toml"):
        pin(source.parent, work)
    workspace = write(source.parent / "Cargo.toml", '[workspace]\nmembers = ["eng*"]\n')
    with pytest.raises(InvalidInput, match="member of the workspace"):
        pin(source, work)
    workspace.write_text('[workspace]\nexclude = ["engine"]\n')
    (source / "gone").symlink_to("/nowhere/at/all")
    assert set(pin(source, work).tree()) == ENGINE
    write(source.parent / "nets" / "a.nnue")
    (source / "nets").symlink_to(source.parent / "nets")
    with pytest.raises(InvalidInput, match="leads out of the source"):
        pin(source, work)


def test_pinning_copies_and_leaves_the_checkout_alone(source):
    work, net = source / "tuning", write(source.parent / "net.nnue", "weights")
    (source / "net.nnue").symlink_to(net)
    (source / "src" / "alias.rs").symlink_to("main.rs")
    (source / "src" / "whole.rs").symlink_to(source / "src" / "main.rs")
    dates = {path: path.lstat().st_mtime_ns for path in source.rglob("*")}
    pinned = pin(source, work)
    tree = pinned.tree()
    assert set(tree) == ENGINE | {"src/alias.rs", "src/whole.rs", "net.nnue"}
    assert (tree["src/alias.rs"].link, tree["src/whole.rs"].link) == ("main.rs", None)
    assert tree["net.nnue"].facts == (0o644, b"weights")
    assert not pinned.drift()
    assert {path: path.lstat().st_mtime_ns for path in dates} == dates
    assert pin(source, work) == pinned
    assert [path.name for path in (work / "pinned").iterdir()] == [pinned.sha256]
    write(source / "src" / "main.rs", "fn main() {}")
    write(source / "src" / "more.rs")
    (source / "Cargo.lock").unlink()
    again = pin(source, work, sha256=pinned.sha256)
    assert again.drift() == ("Cargo.lock", "src/main.rs", "src/more.rs", "src/whole.rs")
    assert "println" in (again.path / "src" / "main.rs").read_text()


def test_an_archive_that_is_none_or_would_write_elsewhere_is_refused(tmp_path):
    trees: tuple[Tree, ...] = ({}, {"../outside": TreeEntry(CRATE / "Cargo.toml")})
    empty, outside = (b"".join(archived(tree)) for tree in trees)
    for wrong in (b"none", gzip.compress(empty), outside):
        with pytest.raises(TuningError, match="cannot be unpacked: "):
            unpack(wrong, tmp_path / "work" / "source")
    with pytest.raises(FileNotFoundError):
        unpack(empty, tmp_path / "work" / "source")
    assert not list((tmp_path / "work").iterdir())


def test_an_altered_copy_is_refused_and_a_lost_one_made_again(source, work):
    pinned, again = pin(source, work), "pub const MARGIN: u64 = 1;"
    write(pinned.path / "src" / "constants.rs", again)
    again_pinned = partial(pin, source, work, sha256=pinned.sha256)
    for use in (pinned.verify, again_pinned, partial(archive_of, pinned)):
        with pytest.raises(TuningError, match="was altered"):
            use()
    shutil.rmtree(pinned.path)
    assert again_pinned() == pinned
    shutil.rmtree(pinned.path)
    write(source / "src" / "constants.rs", again)
    with pytest.raises(TuningError, match="is gone"):
        again_pinned()
    assert not pinned.path.exists()
    with pytest.raises(TuningError, match="in-the-way"):
        pin(source, write(work / "in-the-way"))
    shutil.rmtree(source)
    with pytest.raises(TuningError, match="is gone"):
        again_pinned()


@pytest.fixture
def side(tmp_path: Path) -> WorkCopy:
    return WorkCopy(tmp_path / "plus")


def dates(side: WorkCopy) -> dict[str, int]:
    return {name: e.path.lstat().st_mtime_ns for name, e in tree_at(side.tree).items()}


def with_constants(tree: Tree, text: str) -> Tree:
    name = "src/constants.rs"
    return {**tree, name: replace(tree[name], text=text)}


def test_only_what_differs_is_written_and_dated_forward(source, side):
    tree = Checkout(source).tree()
    side.lay_out(with_constants(tree, "one"))
    first = dates(side)
    assert max(first.values()) <= time.time_ns(), "nothing was compiled yet"
    side.lay_out(with_constants(tree, "two"))
    second = dates(side)
    assert (side.tree / "src/constants.rs").read_text() == "two"
    assert {name for name in first if first[name] != second[name]} == {"src/constants.rs"}
    assert second["src/constants.rs"] >= first["src/constants.rs"] + 2_000_000_000
    tomorrow = time.time() + 86_400  # the clock was set back since
    os.utime(side.tree / "src/constants.rs", (tomorrow, tomorrow))
    side.lay_out(with_constants(tree, "three"))
    assert (side.tree / "src/constants.rs").stat().st_mtime > tomorrow
    (side.home / "target-0").mkdir()
    side.lay_out({name: entry for name, entry in tree.items() if name != "src/main.rs"})
    side.lay_out(tree)
    assert (side.tree / "src/main.rs").stat().st_mtime > time.time() + 1


def test_a_half_written_tree_is_put_right(source, side):
    (source / "alias.rs").symlink_to("src/main.rs")
    write(source / "gen.sh").chmod(0o755)
    tree = Checkout(source).tree()
    side.lay_out(tree)
    assert not differences(tree_at(side.tree), tree)
    before = dates(side)
    side.lay_out(tree)
    assert dates(side) == before
    write(side.tree / "src" / "main.rs", "fn ma")
    write(side.tree / "left" / "over.rs")
    (side.tree / "gen.sh").chmod(0o644)
    (side.tree / "Cargo.toml").unlink()
    (side.tree / "Cargo.toml").symlink_to("Cargo.lock")
    shutil.rmtree(side.tree / ".cargo")
    (side.tree / ".cargo").symlink_to(source)
    side.lay_out(tree)
    assert not differences(tree_at(side.tree), tree)
    assert (source / "Cargo.toml").is_file()
    assert tree_at(side.tree)["gen.sh"].facts == (0o755, b"")


def test_what_a_build_script_made_stays_until_a_build_does_not_end(source, side):
    tree = Checkout(source).tree()
    with side.compiling():
        side.lay_out(tree, keep_made=True)
        write(side.tree / "made" / "table.bin")
    less = {name: entry for name, entry in tree.items() if name != "src/main.rs"}
    with pytest.raises(TuningError), side.compiling():
        side.lay_out(less, keep_made=True)
        assert tree_at(side.tree).keys() == {*less, "made/table.bin"}
        raise TuningError
    with side.compiling():
        side.lay_out(tree, keep_made=True)
    assert tree_at(side.tree).keys() == tree.keys()


def test_one_builder_at_a_time(side):
    def give_up(seconds: float) -> None:
        raise TimeoutError

    with side.locked(give_up), pytest.raises(TimeoutError), WorkCopy(side.home).locked(give_up):
        pass
    with side.locked(give_up):
        pass

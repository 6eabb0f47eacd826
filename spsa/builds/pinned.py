"""The engine's source as it was when the run began, verified at every use.

A run is built only from this copy. The checkout is read to make the copy and to compare with it.
"""

import json
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import spsa.builds.tree as tree
from spsa.builds.checkout import OUTER, Checkout, checkout, resolved
from spsa.builds.tree import Entry
from spsa.errors import SourceChanged
from spsa.uci.system import sync_folder

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Pinned:
    """A copy of an engine's source at `path`, named by the hash of its content.

    `prefix` is where the crate begins in it: empty, unless cargo's configuration of directories
    above the checkout had to be kept as well.
    """

    path: Path
    sha256: str
    checkout: Checkout

    @property
    def prefix(self) -> str:
        prefix = ""
        if not self.checkout.cargo:
            return prefix
        while (self.path / prefix).is_dir() and not (self.path / prefix / "Cargo.toml").is_file():
            prefix += OUTER
        return prefix

    @property
    def crate(self) -> Path:
        return self.path / self.prefix

    def tree(self) -> dict[str, Entry]:
        return tree.tree_at(self.path)

    def verify(self) -> None:
        """Raise SourceChanged with the file names if the pinned copy was modified."""
        if self.path.is_symlink():
            raise SourceChanged(f"the pinned source {self.path} is a symbolic link: delete it")
        now = tree.manifest(self.tree())
        if tree.digest(now) != self.sha256:
            changed = tree.differences(_recorded(self.path), now)
            raise SourceChanged(
                f"the pinned source {self.path} was altered: {_listed(changed)}; delete that "
                "directory and resume: it is made again if the checkout still has its content"
            )

    def restore(self) -> None:
        """Make a deleted copy again, if the checkout still has its content.

        Raises SourceChanged with what differs.
        """
        if not self.path.exists():
            entries = tree.manifest(self.checkout.tree())
            _refuse_other(self, entries)
            _store(self, entries)

    def drift(self) -> tuple[str, ...]:
        """How the checkout differs from the pinned copy, which the run goes on with."""
        with tree.disk_errors_as_tuning_errors():
            return tree.differences(_recorded(self.path), tree.manifest(self.checkout.tree()))


def source_sha256(source: Path, exclude: Collection[Path] = (), *, cargo: bool = True) -> str:
    """The hash by which `pin` would name the checkout's content now."""
    with tree.disk_errors_as_tuning_errors():
        return tree.digest(tree.manifest(checkout(source, exclude, cargo=cargo).tree()))


def pin(source: Path, work: Path, exclude: Collection[Path] = (), *, cargo: bool = True) -> Pinned:
    """Copy the checkout's present content to `work/pinned/<its hash>`, unless it is there.

    `exclude` are paths inside the checkout that are no part of the engine: params.toml, the folder
    of published engines, what a declared command makes. Raises InvalidInput if `source` has to be a
    crate for `cargo` and is none that can be built on its own.
    """
    origin = checkout(source, [*exclude, work], cargo=cargo)
    with tree.disk_errors_as_tuning_errors():
        entries = tree.manifest(origin.tree())
        pinned = _pinned(origin, work, tree.digest(entries))
        if not pinned.path.is_dir():
            _store(pinned, entries)
        pinned.verify()
    return pinned


def resume(
    source: Path,
    work: Path,
    sha256: str,
    exclude: Collection[Path] = (),
    *,
    cargo: bool = True,
) -> Pinned:
    """The pinned source of a run that began with `sha256`.

    A missing copy is made again from the checkout if that still has the same content. Otherwise
    raises SourceChanged with what differs.
    """
    origin = Checkout(source.resolve(), resolved([*exclude, work]), cargo)
    pinned = _pinned(origin, work, sha256)
    with tree.disk_errors_as_tuning_errors():
        if not pinned.path.is_dir():
            entries = tree.manifest(checkout(source, [*exclude, work], cargo=cargo).tree())
            _refuse_other(pinned, entries)
            _store(pinned, entries)
        pinned.verify()
    return pinned


def _pinned(origin: Checkout, work: Path, sha256: str) -> Pinned:
    return Pinned(work.resolve() / "pinned" / sha256, sha256, origin)


def _refuse_other(pinned: Pinned, entries: tree.Manifest) -> None:
    if tree.digest(entries) != pinned.sha256:
        raise SourceChanged(_gone(pinned, tree.differences(_recorded(pinned.path), entries)))


def _store(pinned: Pinned, entries: tree.Manifest) -> None:
    """Copy to a temporary name, then rename: other masters see the whole copy or none."""
    pinned.path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=pinned.path.parent))
    try:
        tree.copy(pinned.checkout.tree(), draft / "tree")
        copied = tree.manifest(tree.tree_at(draft / "tree"))
        if copied != entries:
            raise SourceChanged(_moving(pinned, tree.differences(entries, copied)))
        _write(draft / "manifest", entries)
        (draft / "manifest").replace(_record(pinned.path))
        _rename(draft / "tree", pinned.path)
    finally:
        shutil.rmtree(draft)


def _rename(draft: Path, path: Path) -> None:
    try:
        draft.rename(path)
    except OSError:
        if not path.is_dir():
            raise
    sync_folder(path.parent)


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _write(path: Path, entries: tree.Manifest) -> None:
    path.write_text(json.dumps(dict(sorted(entries.items())), indent=1), encoding="utf-8")


def _recorded(path: Path) -> dict[str, str]:
    """The manifest written when the copy was made; empty if it is missing too."""
    try:
        entries = json.loads(_record(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(fingerprint) for name, fingerprint in entries.items()}


def _listed(changed: tuple[str, ...]) -> str:
    more = len(changed) - _SHOWN
    return ", ".join(changed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _moving(pinned: Pinned, changed: tuple[str, ...]) -> str:
    source = pinned.checkout.source
    return f"{source} was changed while it was copied: {_listed(changed)}; start again"


def _gone(pinned: Pinned, changed: tuple[str, ...]) -> str:
    if not _recorded(pinned.path):
        return (
            f"the run's pinned source {pinned.path} is gone with its list of files, and "
            f"{pinned.checkout.source} has changed since; put that back as it was, or start a new "
            "run"
        )
    return (
        f"the run's pinned source {pinned.path} is gone, and {pinned.checkout.source} differs from "
        f"it: {_listed(changed)}; put these files back as they were, or start a new run"
    )

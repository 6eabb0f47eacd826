"""Orders for engines that a worker builds: what it needs besides the archive of the source.

The master writes an order, and a worker of the wanted kind carries it out in folders of its own. It
gets the source as an archive, and builds it as a master does: the same copy, recipe and smoke test.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from spsa.builds.artifacts import MAX_BYTES
from spsa.builds.builder import Builder
from spsa.builds.recipe import Recipe, Rendered, digest_of
from spsa.builds.source import Checkout, Pinned
from spsa.builds.tree import archived, becoming, disk_errors_as_tuning_errors, unpack
from spsa.core.json_values import from_json, to_json
from spsa.core.limits import as_written
from spsa.errors import TuningError

_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """Two engines for one kind of machine.

    `kind` are words of `requirements.kind_of`, `source_sha256` is the hash of the source's archive.
    """

    kind: tuple[str, ...]
    source_sha256: str
    recipe: Recipe
    plus: Rendered
    minus: Rendered

    @property
    def key(self) -> str:
        """The same for equal orders: the name under which the database keeps the two engines."""
        return digest_of(to_json(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The order in the column `recipe`; UnusableState if it has another form."""
        with as_written("a column `recipe`"):
            return from_json(cls, data)


def archive_of(pinned: Pinned) -> bytes:
    """The archive of a pinned source, which is verified first."""
    with disk_errors_as_tuning_errors():
        pinned.restore()
        pinned.verify()
        return archived(pinned.tree())


@contextmanager
def ordered(
    order: BuildOrder, archive: bytes, work: Path, environment: Mapping[str, str]
) -> Iterator[Builder]:
    """A builder for an order; its engines are removed at the end.

    `work` keeps a folder for each source: the source and what the compiler can use again. Those of
    old sources are removed.

    Raises:
        TuningError: the archive is not the one of the order.
        TuningError: it cannot be unpacked.
    """
    with disk_errors_as_tuning_errors():
        home = work / order.source_sha256
        pinned = _unpacked(order, archive, home)
        home.touch()  # it was used now
        _remove_old(work)
        with tempfile.TemporaryDirectory(prefix="engines-", dir=home) as engines:
            # the work copies of one kind and source, so that cargo compiles dependencies once
            place = home / "-".join(order.kind)
            yield Builder(pinned, order.recipe, place, Path(engines), environment)


def _unpacked(order: BuildOrder, archive: bytes, home: Path) -> Pinned:
    """The pinned source of an order, which an earlier order may have left there."""
    found = sha256(archive).hexdigest()
    if found != order.source_sha256:
        raise TuningError(
            f"the archive of the source hashes to {found}, expected {order.source_sha256}"
        )
    path = home / "source"
    if not path.is_dir():
        with becoming(path) as draft:
            unpack(archive, draft.tree, MAX_BYTES)
    pinned = Pinned(path, order.source_sha256, Checkout(path, cargo=not order.recipe.command))
    pinned.verify()
    return pinned


def _remove_old(work: Path) -> None:
    """Remove the sources that no worker of this machine has used for a day."""
    for home in work.iterdir():
        with suppress(FileNotFoundError):  # another worker has just removed it
            if home.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(home, ignore_errors=True)

"""Orders for engines that a worker builds: what it needs besides the archive of the source.

The master writes an order, and a worker of the wanted kind carries it out in folders of its own. It
gets the source as an archive, and builds it as a master does: the same copy, recipe and smoke test.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from spsa.builds.artifacts import MAX_BYTES
from spsa.builds.builder import (
    BuildCancelled,
    Builder,
    BuildSettings,
    BuiltEngine,
    Pinned,
    Rendered,
)
from spsa.builds.cargo.build_key import digest_of
from spsa.builds.checkout import Checkout
from spsa.builds.smoke import FirstSearch, SmokeTimeouts
from spsa.builds.tree import archived, disk_errors_as_tuning_errors, unpack
from spsa.core.json_values import from_json
from spsa.core.stored_json import as_written
from spsa.errors import ArtifactMismatch

__all__ = [
    "BuildCancelled",
    "BuildOrder",
    "BuiltEngine",
    "archive_of",
    "ordered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """Two engines for one kind of machine; the fields are those of BuildSettings.

    `kind` are words of `requirements.kind_of`, `source_sha256` is the hash of the pinned source,
    `archive_sha256` that of its archive. Of plus and minus there are the files that hold values, by
    path, and the values. `go` and `seconds` are those of FirstSearch.
    """

    kind: list[str]
    source_sha256: str
    archive_sha256: str
    command: list[str]
    package: str | None
    binary: str | None
    flags: list[str]
    target: str | None
    level: str | None
    timeout: float
    bench: bool | None
    bench_timeout: float
    go: str | None
    seconds: float
    options: dict[str, str] = field(default_factory=dict)
    plus_files: dict[str, str]
    plus_values: dict[str, float]
    minus_files: dict[str, str]
    minus_values: dict[str, float]

    @property
    def key(self) -> str:
        """The same for equal orders: the name under which the database keeps the two engines."""
        return digest_of(asdict(self))

    @classmethod
    def of(
        cls,
        settings: BuildSettings,
        kind: Sequence[str],
        source_sha256: str,
        archive_sha256: str,
        plus: Rendered,
        minus: Rendered,
    ) -> Self:
        """The order for engines with these values, by these settings."""
        first = settings.first_search
        return cls(
            kind=list(kind),
            source_sha256=source_sha256,
            archive_sha256=archive_sha256,
            command=list(settings.command),
            package=settings.package,
            binary=settings.binary,
            flags=list(settings.flags),
            target=settings.target,
            level=settings.level,
            timeout=settings.timeout,
            bench=settings.bench,
            bench_timeout=settings.smoke.bench,
            go=None if first is None else first.go,
            seconds=0.0 if first is None else first.seconds,
            options=dict(settings.options),
            plus_files=dict(plus.files),
            plus_values=dict(plus.values),
            minus_files=dict(minus.files),
            minus_values=dict(minus.values),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

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
) -> Iterator[tuple[Builder, Rendered, Rendered]]:
    """A builder for an order, with what it has to build; its engines are removed at the end.

    `work` keeps a folder for each source: the source and what the compiler can use again. Those of
    old sources are removed.

    Raises:
        ArtifactMismatch: the archive is not the one of the order.
        TuningError: it cannot be unpacked.
    """
    with disk_errors_as_tuning_errors():
        home = work / order.source_sha256
        pinned = _unpacked(order, archive, home)
        home.touch()  # it was used now
        _remove_oldest(work)
        with tempfile.TemporaryDirectory(prefix="engines-", dir=home) as engines:
            # the work copies of one kind and source, so that cargo compiles dependencies once
            place = home / "-".join(order.kind)
            builder = Builder(pinned, _settings(order), place, Path(engines), environment)
            plus = Rendered(files=order.plus_files, values=order.plus_values)
            yield builder, plus, Rendered(files=order.minus_files, values=order.minus_values)


def _unpacked(order: BuildOrder, archive: bytes, home: Path) -> Pinned:
    """The pinned source of an order, which an earlier order may have left there."""
    found = hashlib.sha256(archive).hexdigest()
    if found != order.archive_sha256:
        raise ArtifactMismatch(
            f"the archive of the source hashes to {found}, expected {order.archive_sha256}"
        )
    path = home / "source"
    pinned = Pinned(path, order.source_sha256, Checkout(path, cargo=not order.command))
    if not path.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=home))
        try:
            unpack(archive, draft, MAX_BYTES)
            draft.rename(path)
        except OSError:
            if not path.is_dir():  # else another worker of this machine has just unpacked it
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    pinned.verify()
    return pinned


_KEPT = 4
_DAY = 86_400.0
"""Of the sources the latest ones stay, and those of the last day.

Another worker of this machine may still build what was used so lately.
"""


def _remove_oldest(work: Path) -> None:
    by_age = sorted(work.iterdir(), key=_used, reverse=True)
    for home in by_age[_KEPT:]:
        if _used(home) < time.time() - _DAY:
            shutil.rmtree(home, ignore_errors=True)


def _used(home: Path) -> float:
    """When a folder was used last; 0 for one that another worker has just removed."""
    try:
        return home.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _settings(order: BuildOrder) -> BuildSettings:
    return BuildSettings(
        source_path=Path(os.devnull),  # the source is what was unpacked
        command=tuple(order.command),
        package=order.package,
        binary=order.binary,
        flags=tuple(order.flags),
        target=order.target,
        level=order.level,
        timeout=order.timeout,
        bench=order.bench,
        smoke=SmokeTimeouts(bench=order.bench_timeout),
        first_search=(
            None if order.go is None else FirstSearch(go=order.go, seconds=order.seconds)
        ),
        options=order.options,
    )

"""The delivery of `[build] where = "worker"`: workers build, each kind of machine its own engines.

The master renders the values, orders two engines for each kind of machine that takes part, and
waits until they are published. It opens an iteration only then, so claims are as always.
"""

import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from spsa.builds.builder import BuildCancelled, BuildSettings, Pinned, Rendered
from spsa.builds.orders import BuildOrder, archive_of
from spsa.builds.requirements import BUILDS, kind_of, lacking
from spsa.builds.sources import render
from spsa.config import read_sources
from spsa.core.params import Space
from spsa.core.words import required_pattern
from spsa.db import Store
from spsa.db.build_queries import OrderedBuild
from spsa.db.master_queries import Sides
from spsa.db.tables import EngineFile
from spsa.errors import ArtifactMismatch, BuildFailed, DatabaseUnreachable
from spsa.master.delivery import Values, different_benches

log = logging.getLogger("spsa.master")

Kind = tuple[str, ...]
Engines = tuple[EngineFile, EngineFile]

_POLL_SECONDS = 1.0
_AT_ONCE = 2
_MAX_ATTEMPTS = 5


class WorkerDelivery:
    """Orders engines from workers, by their kinds of machines.

    `settings` are those of a build for a level of x86-64, or for "" where none is named. A kind
    whose engines answer `bench` otherwise than those of the kind with the most slots is refused for
    as long as this master runs.
    """

    def __init__(
        self,
        store: Store,
        space: Space,
        pinned: Pinned,
        constants_file: str,
        settings: Callable[[str], BuildSettings],
        levels: Sequence[str],
        require: Sequence[str],
        at_once: int | None,
    ) -> None:
        self._store = store
        self._space = space
        self._pinned = pinned
        self._constants_file = constants_file
        self._sources = read_sources(space, pinned.crate, constants_file)
        self._settings = settings
        self._levels = levels
        self._require = tuple(require)
        self._at_once = at_once or _AT_ONCE
        self._stopping = threading.Event()
        self._archives: list[str] = []  # the hash of the one that the database keeps
        self._waiting: list[threading.Thread] = []
        self._told: set[str] = set()
        self._refused: dict[str, str] = {}

    @property
    def source_sha256(self) -> str:
        return self._pinned.sha256

    @property
    def at_once(self) -> int:
        return self._at_once

    @property
    def sides(self) -> tuple[str, ...]:
        return ("plus", "minus") if self._waiting else ()

    def prepare(self, plus: Values, minus: Values) -> Sides:
        self._waiting.append(threading.current_thread())
        try:
            found, waited = self._built(self._rendered(plus), self._rendered(minus))
        finally:
            self._waiting.remove(threading.current_thread())
        alike = self._alike(found)
        (lowest, first), *others = sorted(alike.items())
        return Sides(
            plus=first[0],
            minus=first[1],
            requires=lowest,
            variants={required_pattern(words) or "": pair for words, pair in reversed(others)},
            refused=dict(self._refused),
            waited=waited,
        )

    def cancel(self) -> None:
        self._stopping.set()

    def discard(self, build_keys: Collection[str]) -> None:
        """Do nothing: the binaries are in the database."""

    def _rendered(self, values: Values) -> Rendered:
        files = render(self._space, values, self._sources, self._constants_file)
        return Rendered(files=files, values=dict(values))

    def _built(self, plus: Rendered, minus: Rendered) -> tuple[Mapping[Kind, OrderedBuild], float]:
        """The engines of each kind that workers could build, those of the most slots first.

        Also the seconds until there was a worker to build them.
        """
        orders: dict[Kind, BuildOrder] = {}
        began = ordered = time.monotonic()
        while True:
            if not orders:
                ordered = time.monotonic()
            try:
                kinds = self._kinds()
                for kind in kinds:
                    if kind not in orders:
                        orders[kind] = self._ordered(kind, plus, minus)
                if orders and (found := self._settled(orders)):
                    by_slots = sorted(found, key=lambda kind: -kinds[kind])
                    return {kind: found[kind] for kind in by_slots}, ordered - began
            except DatabaseUnreachable as error:
                log.warning("the database is not reachable, waiting for builds: %s", error)
            if self._stopping.wait(_POLL_SECONDS):
                raise BuildCancelled("the build was stopped")

    def _kinds(self) -> Counter[Kind]:
        """The kinds of the machines that take part and that some worker builds for; their slots."""
        workers = self._store.active_workers()
        slots: Counter[Kind] = Counter()
        for one in workers:
            kind = kind_of(one.words, self._levels)
            plays = not lacking(self._require, one.words) and " ".join(kind) not in self._refused
            if kind and plays:
                slots[kind] += one.slots
        builders = [one.words for one in workers if one.may_build and BUILDS in one.words]
        for kind in list(slots):
            if all(lacking(kind, words) for words in builders):
                del slots[kind]
                name = " ".join(kind)
                self._tell(f"no worker builds for {name}: start one with `compete --spsa --build`")
        if not slots:
            self._tell("waiting for a worker that builds: `compete --spsa --build`")
        return slots

    def _ordered(self, kind: Kind, plus: Rendered, minus: Rendered) -> BuildOrder:
        level = kind[-1] if kind[-1] in self._levels else ""
        order = BuildOrder.of(
            self._settings(level), kind, self._pinned.sha256, self._archive(), plus, minus
        )
        self._store.order_build(
            order.key,
            (*kind, BUILDS),
            order.archive_sha256,
            order.to_json(),
            max_attempts=_MAX_ATTEMPTS,
        )
        return order

    def _archive(self) -> str:
        """The hash of the archive of the source, which the database keeps for the workers."""
        if not self._archives:
            content = archive_of(self._pinned)
            sha256 = hashlib.sha256(content).hexdigest()
            self._store.keep_archive(sha256, content)
            self._archives.append(sha256)
        return self._archives[0]

    def _settled(self, orders: dict[Kind, BuildOrder]) -> dict[Kind, OrderedBuild]:
        """What is published, as soon as no order can bring any more; empty before that."""
        states = {
            one.key: one for one in self._store.ordered_builds([o.key for o in orders.values()])
        }
        by_kind = {kind: states[order.key] for kind, order in orders.items()}
        if any(one.engines is None and one.builders for one in by_kind.values()):
            return {}
        found = {kind: one for kind, one in by_kind.items() if one.engines is not None}
        failed = [_failed(kind, one) for kind, one in by_kind.items() if one.failures]
        if not found and failed:
            raise BuildFailed("\n".join(failed))
        for text in failed:
            self._tell(text)
        for kind in orders.keys() - found.keys():  # its workers left: it is ordered again
            del orders[kind]
        return found

    def _tell(self, text: str) -> None:
        """Warn once of each thing."""
        if text not in self._told:
            self._told.add(text)
            log.warning("%s", text)

    def _alike(self, found: Mapping[Kind, OrderedBuild]) -> dict[Kind, Engines]:
        """The engines by all the words that they require, without those that play another game."""
        alike = {}
        first = None
        for kind, build in found.items():
            engines = self._loaded(build)
            first = first or engines
            reason = different_benches(_benches(engines), _benches(first))
            if reason is None:
                alike[tuple(sorted({*kind, *build.requires, *self._require}))] = engines
            else:
                self._refused[" ".join(kind)] = reason
                log.warning("no binaries for %s are used: %s", " ".join(kind), reason)
        return alike

    def _loaded(self, build: OrderedBuild) -> Engines:
        """Both with their bytes, which the iteration writes again: an old one may be deleted."""
        assert build.engines is not None
        plus, minus = (replace(one, content=self._bytes(one.sha256)) for one in build.engines)
        return plus, minus

    def _bytes(self, sha256: str) -> bytes:
        content = self._store.file(sha256) or b""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ArtifactMismatch(f"the database does not hold the engine {sha256} any more")
        return content


def _benches(engines: Engines) -> tuple[int | None, int | None]:
    return engines[0].bench, engines[1].bench


def _failed(kind: Kind, build: OrderedBuild) -> str:
    reasons = "; ".join(f"{machine}: {reason}" for machine, reason in build.failures)
    return f"no worker can build for {' '.join(kind)}: {reasons}"

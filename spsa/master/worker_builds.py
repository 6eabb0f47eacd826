"""The delivery of `[build] where = "worker"`: workers build, each kind of machine its own engines.

The master renders the values, orders two engines for each kind of machine that takes part, and
waits until they are published. It opens an iteration only then, so claims are as always.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spsa.builds.builder import BuildOrder, archive_of
from spsa.builds.commands import BuildCancelled
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.requirements import BUILDS, kind_of, lacking
from spsa.core import Values
from spsa.core.json_values import to_json
from spsa.db import Store
from spsa.db.build_queries import OrderedBuild
from spsa.db.master_queries import Side, Sides
from spsa.errors import BuildFailed, DatabaseUnreachable, TuningError
from spsa.master.delivery import Delivery, EngineSource, Kind, log

_POLL_SECONDS = 1.0
AT_ONCE = 2  # how many iterations workers build at a time by default

_MAX_ATTEMPTS = 5


@dataclass(kw_only=True)
class WorkerDelivery(Delivery):
    """Orders engines from workers, by their kinds of machines.

    `recipes` are by levels of x86-64, or "" where none is named. A kind that is refused is not
    ordered again for as long as this master runs.
    """

    store: Store
    source: EngineSource
    recipes: Mapping[str, Recipe]
    has_builder: bool = field(init=False, default=True)
    _stopping: threading.Event = field(init=False, default_factory=threading.Event)
    _archive_kept: bool = False  # whether the database has it for the workers
    _told: set[str] = field(init=False, default_factory=set)

    def cancel(self) -> None:
        self._stopping.set()

    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        orders: dict[Kind, BuildOrder] = {}
        sides = self.source.rendered(plus), self.source.rendered(minus)
        while True:
            try:
                kinds = self._kinds()
                for kind in [kind for kind in kinds if kind not in orders]:
                    orders[kind] = self._ordered(kind, *sides)
                if orders and (found := self._settled(orders)):
                    by_slots = sorted(found, key=lambda kind: -kinds[kind])
                    return {kind: self._loaded(kind, found[kind]) for kind in by_slots}
            except DatabaseUnreachable:
                pass  # the session, which waits for it too, tells that
            if self._stopping.wait(_POLL_SECONDS):
                raise BuildCancelled("the build was stopped")

    def _kinds(self) -> Counter[Kind]:
        """The kinds of the machines that take part and that some worker builds for; their slots."""
        workers = self.store.active_workers()
        slots: Counter[Kind] = Counter()
        for worker, _ in workers:
            kind = kind_of(worker.words, [level for level in self.recipes if level])
            plays = not lacking(self.require, worker.words) and " ".join(kind) not in self.refused
            if kind and plays:
                slots[kind] += worker.concurrency
        may_build = (worker.words for worker, machine in workers if machine.may_build)
        builders = [words for words in may_build if BUILDS in words]
        for kind in list(slots):
            if all(lacking(kind, words) for words in builders):
                del slots[kind]
                name = " ".join(kind)
                self._tell(f"no worker builds for {name}: start one with `compete --spsa --build`")
        self.has_builder = bool(slots)
        if not slots:
            self._tell("waiting for a worker that builds: `compete --spsa --build`")
        return slots

    def _ordered(self, kind: Kind, plus: Rendered, minus: Rendered) -> BuildOrder:
        pinned = self.source.pinned
        if not self._archive_kept:
            self.store.keep_files({pinned.sha256: archive_of(pinned)})
            self._archive_kept = True
        order = BuildOrder(
            kind=kind,
            source_sha256=pinned.sha256,
            recipe=self.recipes.get(kind[-1]) or self.recipes[""],
            plus=plus,
            minus=minus,
        )
        words, recipe = (*kind, BUILDS), to_json(order)
        self.store.order_build(
            order.key, words, order.source_sha256, recipe, max_attempts=_MAX_ATTEMPTS
        )
        return order

    def _settled(self, orders: dict[Kind, BuildOrder]) -> dict[Kind, OrderedBuild]:
        """What is published, as soon as no order can bring any more; empty before that."""
        keys = {order.key: kind for kind, order in orders.items()}
        states = {keys[one.key]: one for one in self.store.ordered_builds(list(keys))}
        if any(one.engines is None and one.builders for one in states.values()):
            return {}
        found = {kind: one for kind, one in states.items() if one.engines is not None}
        failed = [
            f"no worker can build for {' '.join(kind)}: "
            + "; ".join(f"{machine}: {reason}" for machine, reason in one.failures)
            for kind, one in states.items()
            if one.failures
        ]
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

    def _loaded(self, kind: Kind, build: OrderedBuild) -> Sides:
        """Both with their bytes, which the iteration writes again: an old one may be deleted."""
        assert build.engines is not None
        plus, minus = (replace(one, content=self._bytes(one.sha256)) for one in build.engines)
        return Sides(Side(plus), Side(minus), (*kind, *build.requires))

    def _bytes(self, sha256: str) -> bytes:
        content = self.store.file(sha256) or b""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise TuningError(f"the database does not hold the engine {sha256} any more")
        return content
